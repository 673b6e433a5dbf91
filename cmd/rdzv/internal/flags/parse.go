package flags

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rdzv/envmap"
	"rdzv/internal/hint"
)

// Spelled annotates a flag with its name as it is spelled in the arguments.
const Spelled = "spelled"

// New is a flag set that prints nothing itself and ends at the first argument that is not a
// flag, so that it never takes a flag of the program.
func New(command string) *pflag.FlagSet {
	f := pflag.NewFlagSet(command, pflag.ContinueOnError)
	f.SetInterspersed(false)
	f.SetNormalizeFunc(Canonical)
	f.Usage = func() {}
	return f
}

// Parse reads the flags from args, and those that args do not contain from their RDZV_<FLAG>
// variables, if they have any. It returns the arguments after the flags: the program, which begins
// with the first word that is not a flag, or after "--". The error is that of all flags and
// variables.
func Parse(f *pflag.FlagSet, args []string, env envmap.Env) (rest []string, err error) {
	flags, rest, err := splitFlags(f, args)
	problems := []error{}
	given := map[string]string{} // the flags as they are spelled in args
	for _, words := range flags {
		if err := f.Parse(words); err != nil {
			problems = append(problems, parseError(f, words[0], err))
		}
		name, _, _ := strings.Cut(strings.TrimLeft(words[0], "-"), "=")
		given[string(Canonical(f, name))] = name
		_ = f.SetAnnotation(name, Spelled, []string{name}) // an unknown flag is a problem
	}
	f.VisitAll(func(flag *pflag.Flag) {
		value := env[Variable(flag.Name)]
		_, ignored := flag.Annotations[NoVariable]
		switch {
		case flag.Changed && (flag.Hidden && flag.Value.Type() != "string"): // it sets another flag
		case flag.Changed:
			problems = append(problems, checkValue(f, flag, given[flag.Name]))
		case value != "" && !ignored:
			problems = append(problems, setFromVariable(f, flag, value))
		}
	})
	return rest, Join(append(problems, err)...)
}

// setFromVariable sets a flag from its variable. A repeatable flag takes one value from each line.
func setFromVariable(f *pflag.FlagSet, flag *pflag.Flag, text string) error {
	values := []string{text}
	if flag.Value.Type() == "stringArray" {
		values = strings.Split(strings.TrimRight(text, "\n"), "\n")
	}
	for _, value := range values {
		if err := f.Set(flag.Name, value); err != nil {
			return fmt.Errorf("cannot run %s: %s=%q: %s",
				f.Name(), Variable(flag.Name), value, requirement(flag, err))
		}
	}
	return nil
}

// checkValue rejects a flag whose value is empty or another flag: --store "$STORE" or
// --store $STORE where STORE is not set.
func checkValue(f *pflag.FlagSet, flag *pflag.Flag, spelled string) error {
	if flag.Value.Type() == "bool" {
		return nil
	}
	value := strings.Trim(flag.Value.String(), "[]")
	name, dashes := strings.CutPrefix(value, "--")
	if value == "" || dashes && (name == "" || f.Lookup(name) != nil) {
		return missingValue(f, "--"+cmp.Or(spelled, flag.Name), value)
	}
	return nil
}

// missingValue is the error of a flag whose value is empty or the next flag.
func missingValue(f *pflag.FlagSet, flag, value string) error {
	return hint.With(fmt.Errorf("cannot run %s: %s %q: a value is missing", f.Name(), flag, value),
		"a shell variable in the command line is probably not set, or a space follows =")
}

// requirement says what the value of a flag must be that cannot be read for this reason.
func requirement(flag *pflag.Flag, err error) string {
	switch flag.Value.Type() {
	case "int":
		return "must be a whole number"
	case "duration":
		return "must be a duration with its unit, such as 10s, 5m or 1h30m"
	case "bool":
		return "must be true or false, or 1 or 0"
	}
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}

// parseError rewords pflag's errors about a word: the flag, the value, the reason.
func parseError(f *pflag.FlagSet, word string, err error) error {
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
		flag, name := err.GetFlag(), "--"+err.GetFlag().Name
		if strings.HasPrefix(word, "--") {
			name, _, _ = strings.Cut(word, "=") // perhaps as torchrun spells it
		}
		if err.GetValue() == "" {
			return missingValue(f, name, "")
		}
		var value any = err.GetValue()
		if refused, is := errors.AsType[*Refused](err); is {
			value = refused.Value
		}
		if text, is := value.(string); is {
			value = strconv.Quote(text)
		}
		return fmt.Errorf("cannot run %s: %s %v: %s", f.Name(), name, value, requirement(flag, err))
	}
	return fmt.Errorf("cannot run %s: %w", f.Name(), err)
}

// Refused is an error of a flag's value that names what is wrong with it, if that is only a part of
// the text, or a number.
type Refused struct {
	Value  any
	Reason string // what it must be
}

func (r *Refused) Error() string { return r.Reason }

// UnknownVariables is a line about each variable that begins with RDZV_, is not one of those known,
// and means nothing. It does not have the value, which may be a token. instead has what to use in
// place of some of them, such as "use --nodes".
func UnknownVariables(
	env envmap.Env, known []string, instead map[string]string,
) (lines []string) {
	const prefix = "RDZV_" // which would make all names similar
	var words []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(known))) {
		words = append(words, strings.TrimPrefix(name, prefix))
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		word, ours := strings.CutPrefix(name, prefix)
		if !ours || env[name] == "" || slices.Contains(words, word) {
			continue
		}
		line := fmt.Sprintf("ignoring %s: rdzv has no such variable", name)
		if instead[name] != "" {
			line = fmt.Sprintf("ignoring %s: %s", name, instead[name])
		} else if near := similar(word, words); len(near) > 0 {
			line += fmt.Sprintf(": did you mean %s?", prefix+strings.Join(near, " or "+prefix))
		}
		lines = append(lines, line)
	}
	return lines
}
