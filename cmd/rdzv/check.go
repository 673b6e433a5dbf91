package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/presence"
)

// check rejects invalid and contradictory flags of exec before anything is started. It reports all
// of them.
func (o *options) check() error {
	return join(slices.Concat(
		o.checkPlacement(), o.checkWorkers(), o.checkMeeting(), o.checkTimeouts()))
}

// checkShared is check for a command that has only the flags of define.
func (o *options) checkShared() error {
	return join(slices.Concat(o.checkPlacement(), o.checkWorkers()))
}

// invalid is the error of one flag.
func (o *options) invalid(flag string, value any, why string) error {
	if text, ok := value.(string); ok {
		value = strconv.Quote(text)
	}
	return fmt.Errorf("cannot run %s: --%s %v: %s", o.flags.Name(), flag, value, why)
}

func (o *options) checkPlacement() (errs []error) {
	if o.given("nodes") && (o.nodes < 1 || o.nodes > envmap.MaxTasks) {
		errs = append(errs, o.invalid("nodes", o.nodes, fmt.Sprintf("must be 1 to %d", envmap.MaxTasks)))
	}
	if len(o.job) > agent.MaxJob {
		reason := fmt.Sprintf("must not be longer than %d bytes", agent.MaxJob)
		errs = append(errs, o.invalid("job", o.job[:16]+"...", reason))
	}
	if strings.ContainsFunc(o.job, unicode.IsControl) {
		errs = append(errs, o.invalid("job", o.job, "must not contain control characters"))
	}
	return errs
}

// checkWorkers makes the environment of a worker in a world of one: what fails here would fail on
// every node after the agents have met.
func (o *options) checkWorkers() (errs []error) {
	if o.masterPort < 0 || o.masterPort > 65535 {
		errs = append(errs, o.invalid("master-port", o.masterPort, "must be 1 to 65535, or 0 for a free port"))
	}
	if o.as != "" && o.as != "openmpi" {
		errs = append(errs, o.invalid("as", o.as, `must be "openmpi"`))
	}
	if _, err := envmap.ProcsPerNode(o.procs, 1, 1, rdzv.MaxSlots); err != nil {
		errs = append(errs, err)
	}
	alone := envmap.Identity{WorldSize: 1, LocalWorldSize: 1, Nodes: 1}
	options := envmap.TorchOptions{Device: envmap.DeviceMode(o.device), Set: o.set}
	if _, err := envmap.TorchChanges(nil, alone, options); err != nil {
		errs = append(errs, err)
	}
	return errs
}

func (o *options) checkMeeting() (errs []error) {
	if o.quiet && o.verbose {
		errs = append(errs, o.contradiction("quiet", "verbose"))
	}
	var err error
	if o.portLo, o.portHi, err = portRange(o.ports); err != nil {
		errs = append(errs, o.invalid("port-range", o.ports, err.Error()))
	}
	if _, _, err := meet.ParseStore(o.store); o.store != "" && err != nil {
		errs = append(errs, err)
	}
	if err := meet.CheckNet(o.net); err != nil {
		errs = append(errs, err)
	}
	if o.insecure && o.tokenFile != "" {
		errs = append(errs, o.contradiction("insecure", "token-file"))
	}
	return errs
}

func (o *options) checkTimeouts() (errs []error) {
	for _, t := range []struct {
		flag  string
		value time.Duration
	}{{"join-timeout", o.joinTimeout}, {"grace", o.grace}, {"exit-timeout", o.exitTimeout}} {
		if t.value < 0 {
			errs = append(errs, o.invalid(t.flag, t.value, "must not be negative"))
		}
	}
	if o.peerTimeout < presence.MinTimeout {
		reason := fmt.Sprintf("must be at least %v", presence.MinTimeout)
		errs = append(errs, o.invalid("peer-timeout", o.peerTimeout, reason))
	}
	return errs
}

// contradiction is the error of two flags, or their variables, that exclude each other.
func (o *options) contradiction(a, b string) error {
	return fmt.Errorf("cannot run %s: --%s and --%s (or %s, %s) exclude each other",
		o.flags.Name(), a, b, variable(a), variable(b))
}

// portRange reads LOW-HIGH, or one port.
func portRange(s string) (lo, hi int, err error) {
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		to = from
	}
	lo, errLo := strconv.Atoi(from)
	hi, errHi := strconv.Atoi(to)
	if errLo != nil || errHi != nil || lo < 1 || hi > 65535 || lo > hi {
		return 0, 0, errors.New("must be LOW-HIGH within 1 to 65535")
	}
	return lo, hi, nil
}
