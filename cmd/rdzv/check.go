package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/presence"
)

// check refuses flags of exec that mean nothing or contradict one another, before
// anything is started. It finds them all at once.
func (o *options) check() error {
	return together(append(o.wrongPlace(), append(o.wrongWorker(), append(o.wrongMeeting(), o.wrongTimes()...)...)...))
}

// checkShared is check for a command that has only the flags of define.
func (o *options) checkShared() error {
	return together(append(o.wrongPlace(), o.wrongWorker()...))
}

// wrong is one such flag.
func (o *options) wrong(flag string, value any, why string) error {
	if text, ok := value.(string); ok {
		value = strconv.Quote(text)
	}
	return fmt.Errorf("cannot run %s: --%s %v: %s", o.flags.Name(), flag, value, why)
}

// maxJob is the longest name of a job, in bytes. It becomes a part of keys and of
// the workers' environment.
const maxJob = 200

func (o *options) wrongPlace() (errs []error) {
	if o.given("nodes") && (o.nodes < 1 || o.nodes > envmap.MaxTasks) {
		errs = append(errs, o.wrong("nodes", o.nodes, fmt.Sprintf("must be 1 to %d", envmap.MaxTasks)))
	}
	if len(o.job) > maxJob {
		errs = append(errs, o.wrong("job", o.job[:16]+"...", fmt.Sprintf("must not be longer than %d bytes", maxJob)))
	}
	if strings.ContainsFunc(o.job, unicode.IsControl) {
		errs = append(errs, o.wrong("job", o.job, "must not have control characters"))
	}
	return errs
}

// wrongWorker tries the worker's environment on a world of one: what fails there
// would fail on every node, after they have met.
func (o *options) wrongWorker() (errs []error) {
	if o.masterPort < 0 || o.masterPort > 65535 {
		errs = append(errs, o.wrong("master-port", o.masterPort, "must be 1 to 65535, or 0 for any"))
	}
	if o.as != "" && o.as != "openmpi" {
		errs = append(errs, o.wrong("as", o.as, `must be "openmpi"`))
	}
	if _, err := envmap.ProcsPerNode(o.procs, 1, 1, rdzv.MaxSlots); err != nil {
		errs = append(errs, err)
	}
	alone := envmap.Identity{WorldSize: 1, LocalWorldSize: 1, Nodes: 1}
	if _, err := envmap.TorchChanges(nil, alone, envmap.TorchOptions{Device: envmap.DeviceMode(o.device), Set: o.set}); err != nil {
		errs = append(errs, err)
	}
	return errs
}

func (o *options) wrongMeeting() (errs []error) {
	if o.quiet && o.verbose {
		errs = append(errs, o.contradiction("quiet", "verbose"))
	}
	var err error
	if o.portLo, o.portHi, err = portRange(o.ports); err != nil {
		errs = append(errs, o.wrong("port-range", o.ports, err.Error()))
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

func (o *options) wrongTimes() (errs []error) {
	for _, t := range []struct {
		flag  string
		value time.Duration
	}{{"join-timeout", o.joinTimeout}, {"grace", o.grace}, {"exit-timeout", o.exitTimeout}} {
		if t.value < 0 {
			errs = append(errs, o.wrong(t.flag, t.value, "must not be negative"))
		}
	}
	if o.peerTimeout < presence.MinTimeout {
		errs = append(errs, o.wrong("peer-timeout", o.peerTimeout, fmt.Sprintf("must be %v or more", presence.MinTimeout)))
	}
	return errs
}

// contradiction tells of two flags that cannot both be meant, by the names that each
// may have been given by.
func (o *options) contradiction(a, b string) error {
	return fmt.Errorf("cannot run %s: --%s and --%s (or %s, %s) contradict each other", o.flags.Name(), a, b, twin(a), twin(b))
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
