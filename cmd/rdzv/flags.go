package main

import (
	"errors"
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
		return nil, false, wrongFlag(f, err)
	}
	var problems []error
	f.VisitAll(func(flag *pflag.Flag) {
		value := env[twin(flag.Name)]
		switch {
		case flag.Changed:
			problems = append(problems, missing(f, flag))
		case value != "":
			problems = append(problems, fromTwin(f, flag, value))
		}
	})
	return f.Args(), f.ArgsLenAtDash() == 0, together(problems)
}

// twin is the variable that stands for a flag: --join-timeout, RDZV_JOIN_TIMEOUT.
func twin(flag string) string {
	return "RDZV_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromTwin sets a flag from its variable, which holds several values of a flag
// that can be given several times on a line each.
func fromTwin(f *pflag.FlagSet, flag *pflag.Flag, text string) error {
	values := []string{text}
	if flag.Value.Type() == "stringArray" {
		values = strings.Split(strings.TrimRight(text, "\n"), "\n")
	}
	for _, value := range values {
		if f.Set(flag.Name, value) != nil {
			return fmt.Errorf("cannot run %s: %s=%q: must be %s", f.Name(), twin(flag.Name), value, kinds[flag.Value.Type()])
		}
	}
	return nil
}

// missing finds a flag that was given nothing, or the flag behind it, for a value:
// --store "$STORE" or --store $STORE, where STORE is not set.
func missing(f *pflag.FlagSet, flag *pflag.Flag) error {
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

// kinds are the values that a type of flag takes, in words.
var kinds = map[string]string{
	"int":      "a whole number",
	"duration": "a time with its unit, as 10s, 5m or 1h30m",
	"bool":     "true or false",
}

// wrongFlag rewords pflag's errors as ours: the flag, the value, the reason.
func wrongFlag(f *pflag.FlagSet, err error) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(f, unknown)
	case errors.As(err, &bare):
		return fmt.Errorf("cannot run %s: %s: a value is missing", f.Name(), dashed(bare.GetSpecifiedName()))
	case errors.As(err, &invalid):
		flag := invalid.GetFlag()
		return fmt.Errorf("cannot run %s: --%s %q: must be %s", f.Name(), flag.Name, invalid.GetValue(), kinds[flag.Value.Type()])
	}
	return fmt.Errorf("cannot run %s: %w", f.Name(), err)
}

// foreign are flags of other launchers, and how exec does the same.
var foreign = map[string]string{
	"n":                "it is --nproc-per-node N here, for the workers of one node",
	"np":               "it is --nproc-per-node N here, for the workers of one node",
	"nnodes":           "it is --nodes N here",
	"node-rank":        "leave it out, the nodes agree on their ranks",
	"master-addr":      "leave it out, or name the first node with --store HOST",
	"rdzv-endpoint":    "leave it out, or name the first node with --store HOST",
	"rdzv-id":          "it is --job NAME here",
	"rdzv-backend":     "leave it out, rdzv brings its own",
	"rdzv-conf":        "there are --join-timeout D and --peer-timeout D",
	"standalone":       "leave it out, one node is what exec takes without --nodes",
	"max-restarts":     "leave it out, a job is not restarted yet",
	"x":                "leave it out, the workers have the environment of rdzv",
	"hostfile":         "start rdzv with mpirun or srun, or on every node by hand",
	"H":                "start rdzv with mpirun or srun, or on every node by hand",
	"host":             "start rdzv with mpirun or srun, or on every node by hand",
	"no-python":        "leave it out, exec runs any program",
	"m":                "rdzv exec -- python3 -m MODULE",
	"module":           "rdzv exec -- python3 -m MODULE",
	"start-method":     "leave it out",
	"local-addr":       "--net NETWORK says which addresses are used",
	"monitor-interval": "leave it out, an end is noticed at once",
}

// unknownFlag names the flag that was meant, as far as that can be guessed.
func unknownFlag(f *pflag.FlagSet, err *pflag.NotExistError) error {
	dashes, name := "--", err.GetSpecifiedName()
	if letters := err.GetSpecifiedShortnames(); letters != "" {
		dashes, name = "-", letters
	}
	name, _, _ = strings.Cut(name, "=")
	wrong := fmt.Errorf("cannot run %s: no flag %q", f.Name(), dashes+name)
	word := strings.ReplaceAll(name, "_", "-") // as torchrun spells them too
	if hint := foreign[word]; hint != "" && f.Name() == "exec" {
		return hinted{wrong, hint}
	}
	var names []string
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near := nearest(word, names); near != "" {
		return hinted{wrong, fmt.Sprintf("did you mean --%s?", near)}
	}
	return wrong
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
