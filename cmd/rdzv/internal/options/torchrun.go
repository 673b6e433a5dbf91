package options

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/envmap"
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
	redirects  string
	tee        string
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
	own.StringVarP(&t.redirects, "redirects", "r", "0", "")
	own.StringVarP(&t.tee, "tee", "t", "0", "")
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

// apply sets what --redirects, --tee and --local-ranks-filter mean. temporary is the directory for
// temporary files.
func (t *Torchrun) apply(c command, o *Output, temporary string) error {
	if t.localRanks != "" && o.show == "" {
		o.show = "local:" + t.localRanks
	}
	for _, flag := range [...][2]string{{"redirects", t.redirects}, {"tee", t.tee}} {
		switch name, value := flag[0], flag[1]; {
		case value == "0":
		case value != "3":
			return c.reject(true, name, value, "must be 0 or 3, because rdzv keeps stdout and stderr of "+
				"a rank in one file; --show RANKS chooses what is shown")
		case name == "tee":
			o.tag = true
		default:
			if o.show == "" {
				o.show = "none"
			}
			if o.logDir == "" {
				o.logDir, o.TemporaryLogs = temporary, true
			}
		}
	}
	return nil
}

// IgnoredLine names the flags that mean nothing here, "" if there are none.
func (t *Torchrun) IgnoredLine() string {
	names := slices.Compact(slices.Sorted(slices.Values(t.ignored)))
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("ignoring %s of torchrun: not needed here", strings.Join(names, ", "))
}
