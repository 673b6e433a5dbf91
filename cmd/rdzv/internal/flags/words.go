package flags

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// splitFlags divides the arguments of a command into its flags, each with its value, so that an
// error in one of them does not hide those of the others, and the rest. The rest begins after
// "--", or with the first word that is not a flag; dashes tells which.
func splitFlags(f *pflag.FlagSet, args []string) (flags [][]string, rest []string, dashes bool) {
	wrong := false // there is a flag that f does not have
	for len(args) > 0 {
		word := args[0]
		isFlag := strings.HasPrefix(word, "-") && word != "-"
		switch {
		case word == "--":
			return flags, args[1:], true
		case !isFlag && wrong && slices.Contains(args, "--"):
			args = args[1:] // probably the value of a flag that has none here
			continue
		case !isFlag:
			return flags, args, false
		}
		wrong = wrong || !isKnown(f, word)
		n := 1 + min(valuesAfter(f, word, args[1:]), len(args)-1)
		flags, args = append(flags, args[:n]), args[n:]
	}
	return flags, nil, false
}

// isKnown tells whether a flag set has a flag.
func isKnown(f *pflag.FlagSet, word string) bool {
	if long, isLong := strings.CutPrefix(word, "--"); isLong {
		name, _, _ := strings.Cut(long, "=")
		return f.Lookup(name) != nil
	}
	return f.Lookup(shortName(f, []rune(word)[1])) != nil
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

// seemsValue tells whether the next word is probably the value of an unknown flag: it is no
// flag, and the program begins later.
func seemsValue(after []string) bool {
	return len(after) > 1 && !strings.HasPrefix(after[0], "-") &&
		(slices.Contains(after, "--") || !isPython(after[0]) && slices.ContainsFunc(after, isPython))
}

func isPython(file string) bool { return strings.HasSuffix(file, ".py") }

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
