package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
	"rdzv/internal/hint"
	"rdzv/internal/shell"
)

// commandLine is that of exec: its words, those after the flags, and whether "--" precedes these.
type commandLine struct {
	args   []string
	words  []string
	dashes bool
}

// program is the program that a command line means, with its arguments. As torchrun does, a command
// line without "--" runs a file that ends in .py by python. Whether there is such a file is found
// later, with the problems of all nodes.
func (l commandLine) program(python string, t options.Torchrun) ([]string, error) {
	words := l.words
	switch {
	case len(words) == 0:
		return nil, hint.With(errors.New("cannot run exec: no program given"),
			"rdzv exec -- python3 main.py")
	case t.Module:
		return slices.Concat([]string{python, "-u", "-m"}, words), nil
	case t.NoPython && !t.RunPath:
		return words, nil
	case t.RunPath, !l.dashes && strings.HasSuffix(words[0], ".py"):
		return slices.Concat([]string{python, "-u"}, words), nil // unbuffered, as under torchrun
	case !l.dashes && otherDash(words[0]) != words[0]:
		err := fmt.Errorf("cannot run exec: the dash in %q is another character than -", words[0])
		return nil, hint.With(err, withDashes(l.args, words))
	case !l.dashes:
		err := fmt.Errorf("cannot run exec: no -- before the program %q", words[0])
		return nil, hint.With(err, inOrder(l.args, words))
	case strings.HasPrefix(words[0], "-"):
		err := fmt.Errorf("cannot run exec: the flag %q is after --, where the program must be",
			words[0])
		return nil, hint.With(err, inOrder(l.args, words))
	}
	return words, nil
}

// otherDash is a word with - in place of the dashes that it begins with and that word processors
// make of -.
func otherDash(word string) string {
	for _, dash := range []string{"\u2012", "\u2013", "\u2014", "\u2015", "\u2212"} {
		if after, is := strings.CutPrefix(word, dash); is {
			return "--" + strings.TrimLeft(after, "-"+dash)
		}
	}
	return word
}

// withDashes is a command line with - in place of other dashes, up to "--".
func withDashes(args, words []string) string {
	args = slices.Clone(args)
	for i := len(args) - len(words); i < len(args) && args[i] != "--"; i++ {
		args[i] = otherDash(args[i])
	}
	return shell.Line(append([]string{"rdzv", "exec"}, withoutPassword(args)...)...)
}

// inOrder is the command line that was probably meant if "--" is missing or misplaced: with the
// flags of exec before the program, as mpirun and torchrun require it too, and with the python that
// torchrun runs. It is "" if args are not of this form.
func inOrder(args, program []string) string {
	flags := args[:len(args)-len(program)]
	f := options.New().ExecFlags()
	f.SetInterspersed(true)
	if f.Parse(program) == nil {
		flags, program = slices.Concat(flags, without(program, f.Args())), f.Args()
	}
	flags = slices.DeleteFunc(slices.Clone(flags), func(word string) bool { return word == "--" })
	switch {
	case len(program) == 0:
		program = []string{"PROGRAM"}
	case strings.HasPrefix(program[0], "-"):
		return "" // not flags of exec
	case strings.HasSuffix(program[0], ".py"):
		program = slices.Concat([]string{"python3"}, program)
	}
	flags = withoutPassword(flags)
	return shell.Line(slices.Concat([]string{"rdzv", "exec"}, flags, []string{"--"}, program)...)
}

// withoutPassword is words without the password of --store-user.
func withoutPassword(words []string) []string {
	words = slices.Clone(words)
	for i, word := range words {
		name, _, together := strings.Cut(word, "=")
		switch after, isFlag := strings.CutPrefix(name, "--"); {
		case !isFlag || flags.Canonical(nil, after) != "store-user":
		case together:
			words[i], _, _ = strings.Cut(word, ":")
		case i+1 < len(words):
			words[i+1], _, _ = strings.Cut(words[i+1], ":")
		}
	}
	return words
}

// without is words without those of rest, which is in the same order.
func without(words, rest []string) (left []string) {
	for _, w := range words {
		if len(rest) > 0 && w == rest[0] {
			rest = rest[1:]
		} else if w != "--" {
			left = append(left, w)
		}
	}
	return left
}
