package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
	"rdzv/cmd/rdzv/internal/tables"
	"rdzv/envmap"
	"rdzv/internal/hint"
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
	now     func() time.Time // nil if lines have no time
	environ []string
	env     envmap.Env
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	console *console.Console
	dir     string // of the executable, without links; "" if it is not known

	commands commands // all that there are
}

// process returns the parts of this process that the configuration of an agent needs.
func (a *app) process() options.Process {
	return options.Process{
		Environ: a.environ, Env: a.env, Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr,
		Console: a.console, Dir: a.dir,
	}
}

// print writes the requested data to stdout.
func (a *app) print(text string) int {
	if _, err := a.stdout.WriteString(text); err != nil {
		return a.fail(fmt.Errorf("cannot write to stdout: %w", errors.Unwrap(err)))
	}
	return codeOK
}

// out is where stdout leads, with data for people or as JSON.
func (a *app) out(asJSON bool) console.Destination {
	if asJSON {
		return console.Of(console.JSON, 0, 0)
	}
	return console.DestinationOf(a.stdout, console.SettingOf(a.env))
}

// show prints data: as JSON, or as the table that is made of it.
func (a *app) show(asJSON bool, data any, table func(console.Destination) string) int {
	to := a.out(asJSON)
	if to.IsJSON() {
		return a.print(string(tables.JSON(data)))
	}
	return a.print(table(to))
}

// fail prints an error and its hint.
func (a *app) fail(err error) int {
	a.console.Fail(err)
	return codeUnknown
}

// usage prints all that is wrong with the command line. Problems with the same hint are together.
func (a *app) usage(err error, command string) int {
	problems, hinted := flags.Problems(err), false
	for i, problem := range problems {
		advice := agent.Hint(problem)
		same := func(other error) bool { return advice != "" && agent.Hint(other) == advice }
		switch {
		case slices.ContainsFunc(problems[:i], same): // printed
		case advice == "":
			a.console.Error("%s", problem.Error())
		default:
			for _, other := range problems[i:] {
				if same(other) {
					a.console.Error("%s", other.Error())
				}
			}
			a.console.Hint(advice)
			hinted = true
		}
	}
	if !hinted {
		a.console.Hint(strings.TrimSpace("rdzv help " + command))
	}
	return codeUsage
}

// insideWorker adds a suggestion to the refusal to run a command inside a worker.
func insideWorker(command string, err error, advice string) error {
	if _, inside := errors.AsType[*agent.InsideWorkerError](err); inside {
		return hint.With(fmt.Errorf("cannot run %s: %w", command, err), advice)
	}
	return err
}

// variables are the RDZV_ variables that a user can set, or exec and env set for workers.
func (all commands) variables() []string {
	known := []string{
		"RDZV_TOKEN", "RDZV_JOIN", "RDZV_TERMINATION_LOG", "RDZV_PYTHON", "RDZV_NO_CAPTURE",
		"RDZV_EXPORT_FILE", options.UserVariable,
	}
	for _, c := range all {
		for _, g := range c.groups {
			for _, r := range g.Rows {
				if !g.NoEnv {
					known = append(known, flags.Variable(r.Name()))
				}
			}
		}
	}
	return slices.Concat(known, workerVariables)
}

// withoutVariable are names of variables of earlier versions, and those that variables of flags
// would have which have none, with what to do instead.
func (all commands) withoutVariable() map[string]string {
	known := all.variables()
	instead := map[string]string{
		"RDZV_NODE_AGENT": "use rdzv exec --launcher NAME",
		"RDZV_DEEP":       "use rdzv check, which always imports torch",
		"RDZV_HEAD_START": "the head start of rank 0 is always 200 ms",
	}
	for _, c := range all {
		for _, g := range c.groups {
			for _, r := range g.Rows {
				name := flags.Variable(r.Name())
				if g.NoEnv && !slices.Contains(known, name) && instead[name] == "" {
					instead[name] = strings.TrimSpace(
						fmt.Sprintf("use rdzv %s --%s %s", c.Name(), r.Name(), r.Argument()))
				}
			}
		}
	}
	return instead
}

// warnOfVariables says that variables are ignored that are named as flags of this command.
func (a *app) warnOfVariables(c command) {
	instead := commands{c}.withoutVariable()
	for _, r := range c.rows() {
		name := flags.Variable(r.Name())
		if a.env[name] != "" && instead[name] != "" &&
			!slices.Contains(a.commands.variables(), name) {
			a.console.Info("ignoring %s: %s", name, instead[name])
		}
	}
}

// workerVariables are those beginning with RDZV_ that exec and env set for workers.
var workerVariables = []string{"RDZV_RUN_ID", "RDZV_ATTEMPT", "RDZV_DETECTED", "RDZV_DEVICE_INDEX"}
