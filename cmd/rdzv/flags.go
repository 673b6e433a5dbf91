package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"rdzv/envmap"
)

// newFlags is a flag set that says nothing by itself and ends at the first word
// that is no flag, so that it never eats a flag of the program.
func newFlags(command string) *pflag.FlagSet {
	f := pflag.NewFlagSet(command, pflag.ContinueOnError)
	f.SetInterspersed(false)
	f.Usage = func() {}
	return f
}

// parse reads the flags from args, and from its twin RDZV_<FLAG> in the
// environment each flag that args do not give. It returns the words behind the
// flags and whether "--" stands before them.
func parse(f *pflag.FlagSet, args []string, env envmap.Env) (rest []string, dashes bool, err error) {
	if err := f.Parse(args); err != nil {
		return nil, false, fmt.Errorf("cannot run %s: %w", f.Name(), plain(err))
	}
	f.VisitAll(func(flag *pflag.Flag) {
		value, set := env[twin(flag.Name)]
		if flag.Changed || !set || value == "" || err != nil {
			return
		}
		if e := f.Set(flag.Name, value); e != nil {
			err = fmt.Errorf("cannot run %s: %s=%q: %w", f.Name(), twin(flag.Name), value, reason(e))
		}
	})
	return f.Args(), f.ArgsLenAtDash() == 0, err
}

// twin is the variable that stands for a flag: --join-timeout, RDZV_JOIN_TIMEOUT.
func twin(flag string) string {
	return "RDZV_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// plain rewords pflag's errors as ours: the flag, the value, the reason.
func plain(err error) error {
	switch e := err.(type) {
	case *pflag.NotExistError:
		return fmt.Errorf("no flag %q", dashed(e.GetSpecifiedName()))
	case *pflag.ValueRequiredError:
		return fmt.Errorf("flag %q needs a value", dashed(e.GetSpecifiedName()))
	case *pflag.InvalidValueError:
		return fmt.Errorf("--%s %q: %w", e.GetFlag().Name, e.GetValue(), reason(e.Unwrap()))
	default:
		return err
	}
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// reason takes the innermost error: strconv and time each say all of it again.
func reason(err error) error {
	if invalid, ok := err.(*pflag.InvalidValueError); ok {
		err = invalid.Unwrap()
	}
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 && strings.HasPrefix(text, "strconv.") {
		text = text[i+2:]
	}
	return fmt.Errorf("%s", strings.TrimPrefix(text, "time: "))
}
