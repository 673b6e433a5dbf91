package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rdzv/internal/shell"
)

// read takes the flags and the program.
func (e *execution) read(args []string) error {
	words, dashes, err := parse(e.execFlags(), args, e.env)
	if err != nil { // --report, too, or the beginning of the program may have been misread
		return join(err, e.check(e.env))
	}
	program, badProgram := e.program(words, dashes, args)
	if badProgram == nil {
		if e.problems, err = e.checkOutputs(e.app); err != nil {
			return err // a report of it could replace the other file
		}
		e.report.file, e.report.Program = e.reportFile, program
	}
	return join(badProgram, e.check(e.env))
}

// program is the program that a command line means, with its arguments. As torchrun does, a command
// line without "--" runs a file that ends in .py by python. Whether there is such a file is found
// later, with the problems of all nodes.
func (e *execution) program(words []string, dashes bool, args []string) ([]string, error) {
	python := cmp.Or(e.env["RDZV_PYTHON"], "python3") // that of python -m rdzv
	switch {
	case len(words) == 0:
		return nil, hinted{errors.New("cannot run exec: no program given"),
			"rdzv exec -- python3 main.py"}
	case e.torchrun.module:
		return slices.Concat([]string{python, "-u", "-m"}, words), nil
	case e.torchrun.noPython && !e.torchrun.runPath:
		return words, nil
	case e.torchrun.runPath, !dashes && strings.HasSuffix(words[0], ".py"):
		return slices.Concat([]string{python, "-u"}, words), nil // unbuffered, as under torchrun
	case !dashes && otherDash(words[0]) != words[0]:
		err := fmt.Errorf("cannot run exec: the dash in %q is another character than -", words[0])
		return nil, hinted{err, withDashes(args, words)}
	case !dashes:
		err := fmt.Errorf("cannot run exec: no -- before the program %q", words[0])
		return nil, hinted{err, inOrder(args, words)}
	case strings.HasPrefix(words[0], "-"):
		err := fmt.Errorf("cannot run exec: the flag %q is after --, where the program must be",
			words[0])
		return nil, hinted{err, inOrder(args, words)}
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
	f := newOptions().execFlags()
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

// withoutPassword is flags without the password of --store-user.
func withoutPassword(flags []string) []string {
	flags = slices.Clone(flags)
	for i, word := range flags {
		name, _, together := strings.Cut(word, "=")
		switch after, isFlag := strings.CutPrefix(name, "--"); {
		case !isFlag || canonical(nil, after) != "store-user":
		case together:
			flags[i], _, _ = strings.Cut(word, ":")
		case i+1 < len(flags):
			flags[i+1], _, _ = strings.Cut(flags[i+1], ":")
		}
	}
	return flags
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
