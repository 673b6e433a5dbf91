package flags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"rdzv/internal/hint"
)

// splitFlags divides the arguments of a command into its flags, each with its value, so that an
// error in one of them does not hide those of the others, and the program with its arguments, which
// begins with the first word that is not a flag, or after "--". err is about a word that is no flag
// and probably no program either.
func splitFlags(f *pflag.FlagSet, args []string) (flags [][]string, rest []string, err error) {
	wrong := false // there is a flag that f does not have
	for len(args) > 0 {
		word := args[0]
		isFlag := strings.HasPrefix(word, "-") && word != "-"
		switch {
		case word == "--":
			return flags, args[1:], nil
		case !isFlag && wrong && slices.Contains(args, "--"):
			args = args[1:] // probably the value of a flag that has none here
			continue
		case withDashes(word) != word:
			return flags, args, otherDash(f, word)
		case !isFlag && len(flags) > 0:
			return flags, args, valueOfSwitch(f, flags[len(flags)-1], word)
		case !isFlag:
			return flags, args, nil
		}
		wrong = wrong || !isKnown(f, word)
		n := 1 + min(valuesAfter(f, word, args[1:]), len(args)-1)
		flags, args = append(flags, args[:n]), args[n:]
	}
	return flags, nil, nil
}

// Asks tells whether one of these flags is before the program.
func Asks(f *pflag.FlagSet, args []string, names ...string) bool {
	flags, _, _ := splitFlags(f, args)
	return slices.ContainsFunc(flags, func(words []string) bool {
		return slices.Contains(names, words[0])
	})
}

// valueOfSwitch is the error of a word after a flag that takes none if the word looks like its
// value: otherwise a program of this name would run, such as /bin/true. A word must follow -m.
func valueOfSwitch(f *pflag.FlagSet, before []string, word string) error {
	values := []string{"true", "false", "yes", "no", "0", "1"}
	flag := lookup(f, before[0])
	if len(before) > 1 || flag == nil || flag.NoOptDefVal == "" || flag.Name == "module" ||
		strings.Contains(before[0], "=") || !slices.Contains(values, word) {
		return nil
	}
	err := fmt.Errorf("cannot run %s: %s takes no value, and %q after it looks like one", f.Name(),
		before[0], word)
	return hint.With(err, fmt.Sprintf("write --%[1]s or --%[1]s=false; if a program is called %[2]s: "+
		"-- %[2]s", flag.Name, word))
}

// otherDash is the error of a word that begins with a dash that word processors make of -.
func otherDash(f *pflag.FlagSet, word string) error {
	return hint.With(
		fmt.Errorf("cannot run %s: the dash in %q is another character than -", f.Name(), word),
		"write "+withDashes(word))
}

// withDashes is a word with - in place of other dashes at its beginning.
func withDashes(word string) string {
	const others = "\u2012\u2013\u2014\u2015\u2212"
	name := strings.TrimLeft(word, "-"+others)
	if !strings.ContainsAny(word[:len(word)-len(name)], others) {
		return word
	}
	return "--" + name
}

// isKnown tells whether a flag set has a flag.
func isKnown(f *pflag.FlagSet, word string) bool { return lookup(f, word) != nil }

// lookup is the flag that a word is or begins with; nil if there is none.
func lookup(f *pflag.FlagSet, word string) *pflag.Flag {
	if long, isLong := strings.CutPrefix(word, "--"); isLong {
		name, _, _ := strings.Cut(long, "=")
		return f.Lookup(name)
	}
	return f.Lookup(shortName(f, []rune(word)[1]))
}

// valuesAfter is how many words after a flag are its values.
func valuesAfter(f *pflag.FlagSet, word string, after []string) int {
	if long, isLong := strings.CutPrefix(word, "--"); isLong {
		if strings.Contains(long, "=") {
			return 0
		}
		return valuesOf(f, long, after)
	}
	for i, letter := range word[1:] {
		last := i+1+len(string(letter)) == len(word) // otherwise the value is in the same word
		switch flag := f.Lookup(shortName(f, letter)); {
		case flag == nil && strings.ContainsAny(word, "=0123456789"):
			return 0
		case flag == nil:
			return foreignValues(word[1:], after)
		case flag.NoOptDefVal == "" && last:
			return 1
		case flag.NoOptDefVal == "":
			return 0
		}
	}
	return 0
}

// valuesOf is how many words after the flag with this name are its values.
func valuesOf(f *pflag.FlagSet, name string, after []string) int {
	switch flag := f.Lookup(name); {
	case flag == nil:
		return foreignValues(string(Canonical(f, name)), after)
	case flag.NoOptDefVal == "":
		return 1
	}
	return 0
}

// shortName is the name of the flag with this letter, "" if there is none.
func shortName(f *pflag.FlagSet, letter rune) (name string) {
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Shorthand == string(letter) {
			name = flag.Name
		}
	})
	return name
}

// TorchrunNames are flags of torchrun whose values mean the same in exec, and exec's names of them.
var TorchrunNames = [...][2]string{
	{"nnodes", "nodes"}, {"master-addr", "store"}, {"rdzv-id", "job"},
}

// Canonical is the name of a flag that may be spelled as torchrun's: --nproc_per_node, --nnodes.
func Canonical(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	name = strings.ReplaceAll(name, "_", "-")
	for _, flag := range TorchrunNames {
		if flag[0] == name {
			name = flag[1]
		}
	}
	return pflag.NormalizedName(name)
}
