package agent

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/etcd"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/presence"
)

// None is the value of Config.Grace, JoinTimeout and LastCall for no time at all, because 0 is
// their default: workers are killed at once, there is no limit, no last call.
const None time.Duration = math.MinInt64

// Defaults has the values of the fields whose zero value stands for another one, except for
// StoreTimeout, which depends on others. They are those of "rdzv exec".
func Defaults() Config {
	return Config{
		Rules:       rdzv.Rules{LastCall: 30 * time.Second},
		JoinTimeout: 10 * time.Minute, Grace: 10 * time.Second,
		PeerTimeout: presence.DefaultTimeout, HealthTimeout: time.Minute,
		PortLow: meet.DefaultPortLo, PortHigh: meet.DefaultPortHi,
		Etcd:   etcd.Cluster{Prefix: rdzv.DefaultPrefix},
		Device: envmap.DeviceIndex, Bind: envmap.BindNone,
	}
}

// orNone is the time of a field that may be None.
func orNone(value, byDefault time.Duration) time.Duration {
	if value == None {
		return 0
	}
	return cmp.Or(value, byDefault)
}

func (c *Config) fill() {
	d := Defaults()
	c.JoinTimeout, c.LastCall = orNone(c.JoinTimeout, d.JoinTimeout), orNone(c.LastCall, d.LastCall)
	c.Grace = orNone(c.Grace, d.Grace)
	c.PeerTimeout = cmp.Or(c.PeerTimeout, d.PeerTimeout)
	c.HealthTimeout = cmp.Or(c.HealthTimeout, d.HealthTimeout)
	c.Device, c.Bind = cmp.Or(c.Device, d.Device), cmp.Or(c.Bind, d.Bind)
	c.Etcd.Prefix = cmp.Or(c.Etcd.Prefix, d.Etcd.Prefix)
	if c.PortLow == 0 && c.PortHigh == 0 {
		c.PortLow, c.PortHigh = d.PortLow, d.PortHigh
	}
	switch {
	case c.StoreTimeout != 0:
	case c.Restarts.Max > 0:
		c.StoreTimeout = c.PeerTimeout
	default:
		c.StoreTimeout = max(DefaultStoreTimeout, c.PeerTimeout)
	}
	if c.Root == nil {
		c.Root = host.NewRoot()
	}
	if c.Events == nil {
		c.Events = func(Event) {}
	}
	if c.StoreFailed == nil {
		c.StoreFailed = func(error) {}
	}
}

// A SettingError says that no agent could use the value of a field of Config.
type SettingError struct {
	Flag   string // of the field, such as "--grace"
	Value  string // as Go writes it; "" if it is of no interest
	Reason string // what it must be
}

func (e *SettingError) Error() string {
	return strings.TrimRight(e.Flag+" "+e.Value, " ") + ": " + e.Reason
}

// An ExclusiveError says that two fields of Config exclude each other, and both are set: their
// flags, such as "--insecure".
type ExclusiveError struct{ A, B string }

func (e *ExclusiveError) Error() string { return e.A + " and " + e.B + " exclude each other" }

// Validate returns everything in c that no agent could use, each a [SettingError], an
// [ExclusiveError] or an error of the package that reads the value; nil if there is nothing. [Plan]
// and [Run] do the same. What depends on this node, such as a program that is missing, is a
// [rdzv.Problem].
func (c Config) Validate() error {
	c.fill()
	return errors.Join(c.validateNodes(), c.validateStore(), c.validateTimes(), c.validateRestarts(),
		c.validateOutput(), c.validateWorkers())
}

// setting is the error of one field, nil unless its value is bad.
func setting(bad bool, flag string, value any, reason string, args ...any) error {
	if !bad {
		return nil
	}
	text := fmt.Sprint(value)
	if s, is := value.(string); is && s != "" {
		text = strconv.Quote(s)
	}
	return &SettingError{flag, text, fmt.Sprintf(reason, args...)}
}

// exclusive is the error of two fields, nil unless both are set.
func exclusive(both bool, a, b string) error {
	if !both {
		return nil
	}
	return &ExclusiveError{a, b}
}

const negative = "must not be negative"

func (c *Config) validateNodes() error {
	rank := 0
	if c.NodeRank != nil {
		rank = *c.NodeRank
	}
	beginning := c.Job[:min(16, len(c.Job))] + "..."
	badName := ""
	if err := rdzv.CheckName(c.Job); err != nil {
		badName = err.Error()
	}
	return errors.Join(c.Launcher.Check(),
		setting(c.Nodes < 0 || c.Nodes > envmap.MaxTasks, "--nodes", c.Nodes, "must be 1 to %d",
			envmap.MaxTasks),
		setting(c.MinNodes < 0 || c.MinNodes > c.Nodes, "--nodes MIN:MAX", c.MinNodes, "must be 1 to %d",
			c.Nodes),
		setting(rank < 0 || rank >= envmap.MaxTasks, "--node-rank", rank, "must be 0 to %d",
			envmap.MaxTasks-1),
		setting(len(c.Job) > MaxJob, "--job", beginning, "must not be longer than %d bytes", MaxJob),
		setting(strings.ContainsFunc(c.Job, unicode.IsControl), "--job", c.Job,
			"must not contain control characters"),
		setting(badName != "", "--job", c.Job, "%s", badName),
	)
}

func (c *Config) validateStore() (err error) {
	badEtcd := c.Etcd.Check() // its message has no password that is in a URL
	lo, hi, external := c.PortLow, c.PortHigh, c.Etcd.Given() && badEtcd == nil
	if c.Store != "" {
		_, _, err = meet.ParseStore(c.Store)
	}
	return errors.Join(err,
		setting(lo < 1 || hi > maxPort || lo > hi, "--port-range", fmt.Sprintf("%d-%d", lo, hi),
			"must be LOW-HIGH within 1 to %d, such as 29600-29999", maxPort),
		exclusive(external && c.Store != "", "--store URL", "--store HOST"),
		exclusive(external && c.Insecure, "--store", "--insecure"),
		setting(external && c.Join != "", "--store", c.Etcd.String(), "RDZV_JOIN names another store"),
		setting(external && !c.Etcd.Protected() && c.exports(), "--store", c.Etcd.String(),
			"variables are exported through https:// only"),
		exclusive(c.Insecure && c.TokenFile != "", "--insecure", "--token-file"),
		exclusive(c.Insecure && c.exports(), "--insecure", "--export"),
		badEtcd, meet.CheckNet(c.Networks))
}

func (c *Config) validateTimes() error {
	shortest, why := presence.MinTimeout, ""
	if c.Etcd.Given() && c.Restarts.Max > 0 {
		shortest = MinPeerTimeoutInEtcd
		why = " with restarts: electing a leader takes an etcd cluster up to 2s"
	}
	errs := []error{
		setting(c.PeerTimeout < shortest, "--peer-timeout", c.PeerTimeout, "must be at least %v%s",
			shortest, why),
		setting(c.StoreTimeout < c.PeerTimeout, "--store-timeout", c.StoreTimeout,
			"must be at least --peer-timeout, %v", c.PeerTimeout),
	}
	for _, t := range []struct {
		flag  string
		value time.Duration
	}{
		{"--join-timeout", c.JoinTimeout}, {"--last-call", c.LastCall}, {"--grace", c.Grace},
		{"--exit-timeout", c.ExitTimeout}, {"Config.ReportEvery", c.ReportEvery},
		{"--stall-timeout", c.StallTimeout}, {"--health-timeout", c.HealthTimeout},
	} {
		errs = append(errs, setting(t.value < 0, t.flag, t.value, negative))
	}
	return errors.Join(errs...)
}

func (c *Config) validateRestarts() (badCodes error) {
	for _, code := range c.Restarts.Never {
		badCodes = errors.Join(badCodes, setting(code < 1 || code > 255, "--no-restart-on",
			strconv.Itoa(code), "must be exit codes, 1 to 255, such as 3,139"))
	}
	return errors.Join(badCodes,
		setting(c.Restarts.Max < 0, "--max-restarts", c.Restarts.Max, negative),
		setting(c.Spares < 0, "--spares", c.Spares, negative),
		setting(c.Spares > 0 && c.Restarts.Max == 0, "--spares", c.Spares,
			"--max-restarts 0 lets none take over ranks"),
		exclusive(c.MinNodes > 0 && c.Spares > 0, "--nodes MIN:MAX", "--spares"),
	)
}

func (c *Config) validateOutput() error {
	unread := c.StallTimeout > 0 && !c.piped()
	return errors.Join(
		setting(unread, "--stall-timeout", c.StallTimeout,
			"needs --log-dir or --tag: other output of the workers is not read"),
		setting(c.StallAction != "" && c.StallAction != StallEnd && c.StallAction != StallStacks,
			"--stall-action", string(c.StallAction), "must be end or stacks"),
		setting(c.NoCapture && (c.piped() || c.Show != ""), `--capture "never"`, "",
			"--tag, --log-dir and --show read the output"),
		setting(CheckShow(c.Show) != nil, "--show", c.Show,
			"must be ranks, such as 0 or 0,4-7, local:0, or none"),
	)
}

// validateWorkers tries the workers' environment on a world of one: what fails here would fail on
// every node after the agents have met.
func (c *Config) validateWorkers() error {
	alone := envmap.Identity{WorldSize: 1, LocalWorldSize: 1, Nodes: 1}
	_, badExport := envmap.ParseExports(c.Export)
	_, badProcs := envmap.ProcsPerNode(c.ProcsPerNode, 1, 1, rdzv.MaxSlots)
	_, badTorch := envmap.TorchChanges(nil, alone, envmap.TorchOptions{Device: c.Device, Set: c.Set})
	return errors.Join(
		setting(c.MasterPort < 0 || c.MasterPort > maxPort, "--master-port", c.MasterPort,
			"must be 1 to %d, or 0 for a free port", maxPort),
		badExport, badProcs, c.Bind.Check(), badTorch)
}
