package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/flagname"
	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

// The exit codes of all commands but exec, whose codes are those of package agent.
const (
	codeOK      = 0
	codeUnknown = 1 // get-rank and others: there is no answer
	codeUsage   = 2 // bad usage
)

// app is one run of the command, with what belongs to its process.
type app struct {
	environ []string
	env     envmap.Env
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	console *console.Console
}

// print writes the requested data to stdout.
func (a *app) print(text string) int {
	if _, err := a.stdout.WriteString(text); err != nil {
		return a.fail(fmt.Errorf("cannot write to stdout: %w", errors.Unwrap(err)))
	}
	return codeOK
}

// onTerminal is what stdout can show.
func (a *app) onTerminal() console.Screen {
	return console.ScreenOf(a.stdout, a.env["TERM"], a.env["NO_COLOR"] != "")
}

// painted is a table with its marks coloured, if stdout shows colours.
func (a *app) painted(table string, marks []console.Mark) string {
	return a.onTerminal().Paint(table, marks)
}

// indented is the JSON form of a value that consists of texts and numbers.
func indented(v any) []byte {
	b, _ := json.MarshalIndent(v, "", "  ") // cannot fail
	return append(b, '\n')
}

// fail prints an error and its hint.
func (a *app) fail(err error) int {
	a.console.Fail(err)
	return codeUnknown
}

// usage prints all that is wrong with the command line. Problems with the same hint are together.
func (a *app) usage(err error, command string) int {
	problems, hinted := problemsOf(err), false
	for i, problem := range problems {
		hint := agent.Hint(problem)
		same := func(other error) bool { return hint != "" && agent.Hint(other) == hint }
		switch {
		case slices.ContainsFunc(problems[:i], same): // printed
		case hint == "":
			a.console.Error("%s", flagname.In(problem.Error()))
		default:
			for _, other := range problems[i:] {
				if same(other) {
					a.console.Error("%s", flagname.In(other.Error()))
				}
			}
			a.console.Hint(hint)
			hinted = true
		}
	}
	if !hinted {
		a.console.Hint(strings.TrimSpace("rdzv help " + command))
	}
	return codeUsage
}

// problemsOf are the errors that [join] or errors.Join made one of.
func problemsOf(err error) (problems []error) {
	several, ok := err.(interface{ Unwrap() []error })
	if all, is := err.(*multierror.Error); is {
		return all.Errors
	} else if !ok {
		return []error{err}
	}
	for _, err := range several.Unwrap() {
		problems = append(problems, problemsOf(err)...)
	}
	return problems
}

// hinted is an error with a suggestion.
type hinted struct {
	error
	hint string
}

func (h hinted) Hint() string  { return h.hint }
func (h hinted) Unwrap() error { return h.error }

// insideWorker adds a suggestion to the refusal to run a command inside a worker.
func insideWorker(command string, err error, hint string) error {
	if _, inside := errors.AsType[*agent.InsideWorkerError](err); inside {
		return hinted{fmt.Errorf("cannot run %s: %w", command, err), hint}
	}
	return err
}
