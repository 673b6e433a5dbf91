package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
	"github.com/spf13/pflag"

	"rdzv/envmap"
)

// newFlags is a flag set that prints nothing itself and ends at the first argument that is not a
// flag, so that it never takes a flag of the program.
func newFlags(command string) *pflag.FlagSet {
	f := pflag.NewFlagSet(command, pflag.ContinueOnError)
	f.SetInterspersed(false)
	f.SetNormalizeFunc(canonical)
	f.Usage = func() {}
	return f
}

// torchrunFlags are flags of torchrun whose values mean the same in exec, and exec's names of them.
var torchrunFlags = [...][2]string{
	{"nnodes", "nodes"}, {"master-addr", "store"}, {"rdzv-id", "job"},
}

// canonical is the name of a flag that may be spelled as torchrun's: --nproc_per_node, --nnodes.
func canonical(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	name = strings.ReplaceAll(name, "_", "-")
	for _, flag := range torchrunFlags {
		if flag[0] == name {
			name = flag[1]
		}
	}
	return pflag.NormalizedName(name)
}

// parse reads the flags from args, and those that args do not contain from their RDZV_<FLAG>
// variables, if they have any. It returns the arguments after the flags and whether "--" precedes
// them.
func parse(f *pflag.FlagSet, args []string, env envmap.Env) (
	rest []string, dashes bool, err error,
) {
	if err := f.Parse(args); err != nil {
		return nil, false, parseError(f, err)
	}
	var problems []error
	f.VisitAll(func(flag *pflag.Flag) {
		value := env[variable(flag.Name)]
		_, ignored := flag.Annotations[noVariable]
		switch {
		case flag.Hidden: // it only sets another flag
		case flag.Changed:
			problems = append(problems, checkValue(f, flag))
		case value != "" && !ignored:
			problems = append(problems, setFromVariable(f, flag, value))
		}
	})
	return f.Args(), f.ArgsLenAtDash() == 0, join(problems...)
}

// setFromVariable sets a flag from its variable. A repeatable flag takes one value from each line.
func setFromVariable(f *pflag.FlagSet, flag *pflag.Flag, text string) error {
	values := []string{text}
	if flag.Value.Type() == "stringArray" {
		values = strings.Split(strings.TrimRight(text, "\n"), "\n")
	}
	for _, value := range values {
		if f.Set(flag.Name, value) != nil {
			return fmt.Errorf("cannot run %s: %s=%q: must be %s",
				f.Name(), variable(flag.Name), value, valueKind(flag))
		}
	}
	return nil
}

// checkValue rejects a flag whose value is empty or another flag: --store "$STORE" or
// --store $STORE where STORE is not set.
func checkValue(f *pflag.FlagSet, flag *pflag.Flag) error {
	if flag.Value.Type() == "bool" {
		return nil
	}
	value := strings.Trim(flag.Value.String(), "[]")
	name, dashes := strings.CutPrefix(value, "--")
	if value == "" || dashes && (name == "" || f.Lookup(name) != nil) {
		return fmt.Errorf("cannot run %s: --%s %q: a value is missing", f.Name(), flag.Name, value)
	}
	return nil
}

// valueKind describes the values of a type of flag.
func valueKind(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "nodes":
		return "a whole number, or MIN:MAX with MIN from 1 to MAX"
	case "int":
		return "a whole number"
	case "duration":
		return "a duration with its unit, such as 10s, 5m or 1h30m"
	case "bool":
		return "true or false"
	}
	return ""
}

// join makes one error of all problems that are not nil, one line each; nil if there are none.
func join(problems ...error) error {
	all := multierror.Append(nil, problems...)
	all.ErrorFormat = func(problems []error) string { return errors.Join(problems...).Error() }
	return all.ErrorOrNil()
}

// parseError rewords pflag's errors: the flag, the value, the reason.
func parseError(f *pflag.FlagSet, err error) error {
	switch err := err.(type) {
	case *pflag.NotExistError:
		return unknownFlag(f, err)
	case *pflag.ValueRequiredError:
		dashes, name := "--", err.GetSpecifiedName()
		if len(name) == 1 {
			dashes = "-"
		}
		return fmt.Errorf("cannot run %s: %s%s: a value is missing", f.Name(), dashes, name)
	case *pflag.InvalidValueError:
		flag := err.GetFlag()
		return fmt.Errorf("cannot run %s: --%s %q: must be %s",
			f.Name(), flag.Name, err.GetValue(), valueKind(flag))
	}
	return fmt.Errorf("cannot run %s: %w", f.Name(), err)
}

// foreignFlags are flags of other launchers, with what exec has instead. They are a function
// because each start of an agent or a watchdog would make the map.
func foreignFlags() map[string]string {
	return map[string]string{
		"n":                "use --nproc-per-node N for the number of workers on a node",
		"np":               "use --nproc-per-node N for the number of workers on a node",
		"rdzv-endpoint":    "omit it, or name the first node with --store HOST",
		"rdzv-backend":     "omit it: rdzv contains its own store",
		"rdzv-conf":        "use --join-timeout D and --peer-timeout D",
		"x":                "use --export NAME",
		"hostfile":         "start rdzv with mpirun or srun, or on every node",
		"H":                "start rdzv with mpirun or srun, or on every node",
		"host":             "start rdzv with mpirun or srun, or on every node",
		"no-python":        "omit it: exec runs any program",
		"m":                "use rdzv exec -- python3 -m MODULE",
		"module":           "use rdzv exec -- python3 -m MODULE",
		"start-method":     "omit it",
		"numa-binding":     "use --bind numa",
		"local-addr":       "use --net NETWORK to choose the addresses",
		"redirects":        "use --log-dir DIR --show none",
		"r":                "use --log-dir DIR --show none",
		"tee":              "use --log-dir DIR --tag",
		"t":                "use --log-dir DIR --tag",
		"monitor-interval": "omit it: rdzv notices at once when a worker ends",
	}
}

// unknownFlag suggests what was probably meant.
func unknownFlag(f *pflag.FlagSet, err *pflag.NotExistError) error {
	dashes, name := "--", err.GetSpecifiedName()
	if letters := err.GetSpecifiedShortnames(); letters != "" {
		dashes, name = "-", letters
	}
	name, _, _ = strings.Cut(name, "=")
	unknown := fmt.Errorf("cannot run %s: unknown flag %q", f.Name(), dashes+name)
	name = string(canonical(f, name))
	if hint := foreignFlags()[name]; hint != "" && f.Name() == "exec" {
		return hinted{unknown, hint}
	}
	var names []string
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near := nearest(name, names); near != "" {
		return hinted{unknown, fmt.Sprintf("did you mean --%s?", near)}
	}
	return unknown
}

// workerVariables are those beginning with RDZV_ that exec and env set for workers.
var workerVariables = []string{"RDZV_RUN_ID", "RDZV_ATTEMPT", "RDZV_DETECTED", "RDZV_DEVICE_INDEX"}

// unknownVariables is a line about each variable that begins with RDZV_ and means nothing. It does
// not have the value, which may be a token.
func unknownVariables(env envmap.Env) (lines []string) {
	const prefix = "RDZV_"
	// Without the prefix, which would make all names similar.
	known := []string{"TOKEN", "JOIN", "TERMINATION_LOG"}
	for _, c := range commands() {
		for _, g := range c.flags {
			for _, r := range g.rows {
				if !g.noEnv {
					known = append(known, strings.TrimPrefix(variable(r.name()), prefix))
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		word, ours := strings.CutPrefix(name, prefix)
		if !ours || env[name] == "" {
			continue
		}
		if slices.Contains(known, word) || slices.Contains(workerVariables, name) {
			continue
		}
		line := fmt.Sprintf("ignoring %s: rdzv has no such variable", name)
		if near := nearest(word, known); near != "" {
			line += fmt.Sprintf(": did you mean %s?", prefix+near)
		}
		lines = append(lines, line)
	}
	return lines
}
