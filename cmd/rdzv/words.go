package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// splitFlags divides the arguments of a command into its flags, each with its value, so that an
// error in one of them does not hide those of the others, and the rest. The rest begins after
// "--", or with the first word that is not a flag; dashes tells which.
func splitFlags(f *pflag.FlagSet, args []string) (flags [][]string, rest []string, dashes bool) {
	for len(args) > 0 {
		word := args[0]
		if word == "--" {
			return flags, args[1:], true
		}
		if !strings.HasPrefix(word, "-") || word == "-" {
			return flags, args, false
		}
		n := 1
		if len(args) > 1 && valueFollows(f, word, args[1:]) {
			n = 2
		}
		flags, args = append(flags, args[:n]), args[n:]
	}
	return flags, nil, false
}

// valueFollows tells whether the value of a flag is the word after it.
func valueFollows(f *pflag.FlagSet, word string, after []string) bool {
	if long, isLong := strings.CutPrefix(word, "--"); isLong {
		if strings.Contains(long, "=") {
			return false
		}
		flag := f.Lookup(long)
		return flag == nil && seemsValue(after) || flag != nil && flag.NoOptDefVal == ""
	}
	for i, letter := range word[1:] {
		flag := f.Lookup(shortName(f, letter))
		switch last := i+1+len(string(letter)) == len(word); {
		case flag == nil:
			return !strings.Contains(word, "=") && seemsValue(after)
		case flag.NoOptDefVal == "":
			return last // otherwise the value is in the same word
		}
	}
	return false
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
	return !strings.HasPrefix(after[0], "-") && slices.Contains(after, "--")
}
