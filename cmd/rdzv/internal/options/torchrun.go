package options

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

// Torchrun are the flags of torchrun that exec accepts besides its own, so that a whole command
// line of torchrun works. They are in no help.
//
// Source: torch/distributed/run.py of PyTorch, torch 1.13 and three later versions: one that has
// --signals-to-handle, one that has --virtual-local-rank, and one that also has --shutdown-timeout
// and --duplicate-stdout-filters.
type Torchrun struct {
	Module   bool // the program is a Python module
	NoPython bool // the program is not run by Python
	RunPath  bool // the program is run by Python, whatever its name

	ignored    []string // as they are given
	redirects  bothStreams
	tee        bothStreams
	localRanks string
}

// define adds the flags to those of a command.
func (t *Torchrun) define(f *pflag.FlagSet) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.BoolFunc("standalone", "", func(string) error { return f.Set("nodes", "1") })
	own.Func("rdzv-endpoint", "", func(text string) error { return setEndpoint(f, text) })
	own.Func("shutdown-timeout", "", func(text string) error { return setShutdown(f, text) })
	own.BoolFunc("virtual-local-rank", "", func(string) error {
		return f.Set("device", string(envmap.DeviceVirtual))
	})
	own.Func("numa-binding", "", func(text string) error { return setNUMABinding(f, text) })
	own.BoolVarP(&t.Module, "module", "m", false, "")
	own.BoolVar(&t.NoPython, "no-python", false, "")
	own.BoolVar(&t.RunPath, "run-path", false, "")
	own.VarP(&t.redirects, "redirects", "r", "")
	own.VarP(&t.tee, "tee", "t", "")
	own.StringVar(&t.localRanks, "local-ranks-filter", "", "")
	for _, name := range []string{
		"rdzv-backend", "rdzv-conf", "local-addr", "role", "start-method", "monitor-interval",
		"event-log-handler", "logs-specs", "signals-to-handle", "duplicate-stdout-filters",
		"duplicate-stderr-filters",
	} {
		own.Func(name, "", func(string) error {
			t.ignored = append(t.ignored, "--"+name)
			return nil
		})
	}
	own.VisitAll(func(flag *pflag.Flag) {
		flag.Hidden, flag.Annotations = true, map[string][]string{flags.NoVariable: {}}
	})
	f.AddFlagSet(own)
}

// asTorchrun tells whether flags by which nodes meet are given as torchrun spells them: without
// --nproc-per-node, torchrun starts one worker on each node.
func asTorchrun(f *pflag.FlagSet) (is bool) {
	f.Visit(func(flag *pflag.Flag) {
		for _, name := range flag.Annotations[flags.Spelled] {
			name = strings.ReplaceAll(name, "_", "-")
			is = is || name == "nnodes" || name == "standalone" || strings.HasPrefix(name, "rdzv-")
		}
	})
	return is
}

// setEndpoint sets --store to the endpoint of torchrun's rendezvous. Port 0 is any port there.
func setEndpoint(f *pflag.FlagSet, endpoint string) error {
	if host, isAny := strings.CutSuffix(endpoint, ":0"); isAny {
		endpoint = host
	}
	if endpoint == "" {
		return nil
	}
	return f.Set("store", endpoint)
}

// setShutdown sets --grace to a number of seconds.
func setShutdown(f *pflag.FlagSet, seconds string) error {
	if _, err := strconv.ParseUint(seconds, 10, 31); err != nil {
		return errors.New("must be a number of seconds")
	}
	return f.Set("grace", seconds+"s")
}

func setNUMABinding(f *pflag.FlagSet, mode string) error {
	if mode != "node" {
		return errors.New(`must be "node", which is --bind numa`)
	}
	return f.Set("bind", "numa")
}

// bothStreams is the value of --redirects and --tee: 3 for stdout and stderr, 0 for neither.
type bothStreams bool

func (b *bothStreams) Set(text string) error {
	if text != "0" && text != "3" {
		return errors.New("must be 0 or 3, because rdzv keeps stdout and stderr of a rank in one file; " +
			"--show RANKS chooses what is shown")
	}
	*b = text == "3"
	return nil
}

func (b *bothStreams) String() string { return strconv.FormatBool(bool(*b)) }

func (b *bothStreams) Type() string { return "streams" }

// apply sets what --redirects, --tee and --local-ranks-filter mean if no flag of exec says
// otherwise. temporary is the directory for temporary files.
func (t *Torchrun) apply(c *agent.Config, o *Output, temporary string) {
	if t.localRanks != "" && c.Show == "" {
		c.Show = "local:" + t.localRanks
	}
	if t.tee {
		_ = tag{c}.Set("true")
	}
	if t.redirects {
		c.Show = cmp.Or(c.Show, "none")
	}
	if t.redirects && c.LogDir == "" {
		c.LogDir, o.TemporaryLogs = temporary, true
	}
}

// IgnoredLine names the flags that mean nothing here, "" if there are none.
func (t *Torchrun) IgnoredLine() string {
	names := slices.Compact(slices.Sorted(slices.Values(t.ignored)))
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("ignoring %s of torchrun: not needed here", strings.Join(names, ", "))
}
