package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/advice"
	"rdzv/cmd/rdzv/internal/announce"
	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/files"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
	"rdzv/cmd/rdzv/internal/tables"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/check"
)

const checkHelp = `Usage: rdzv check [flags] [[--] PROGRAM [ARG]...]

    mpirun -np 4 rdzv check -- python3 main.py
    srun -N2 --ntasks-per-node=8 rdzv check -- python3 main.py
    rdzv check --nodes 2 -- python3 main.py                        on every node
    rdzv check --hosts node1,node2 -- python3 main.py              by ssh

Start it like "rdzv exec": its agents join, compare their nodes, and exit. No
worker is started. One agent prints a table of all nodes to stdout: one row per
fact, with the nodes that have each value if they differ. Rows marked "!" are
explained below the table, "*" marks other differences. Facts are read from
files; without PROGRAM only those of the nodes are compared. On each node the
python of PROGRAM imports torch, for at most --health-timeout, as the workers
would, and --health-cmd is run. Every node connects to MASTER_PORT and to every
other node, or to a sample if there are more than 64 nodes.

{flags}

Exit status, the same for every agent:
    0        exec would start PROGRAM
    1        the job would fail: exec would not start it, torch cannot be
             imported, or a node cannot connect to another one; or not all
             agents have joined
    2        wrong usage
    128+N    signal N ended the check
`

// checkFlags are the flags of check.
type checkFlags struct {
	options *options.Options
	json    bool
}

func newCheckFlags() *checkFlags {
	f := &checkFlags{options: options.New()}
	f.options.Settings.JoinTimeout = 2 * time.Minute
	return f
}

// groups are the flags as the help shows them.
func (f *checkFlags) groups() []flags.Group {
	var rows []flags.Row
	for _, g := range f.options.ExecGroups() {
		rows = append(rows, g.Rows...)
	}
	return []flags.Group{
		flags.Output(&f.json),
		{NoEnv: true, Rows: []flags.Row{
			flags.Flag("--json", "as -o json", &f.json),
		}},
		{
			Title: "The flags of exec work here too, with a --join-timeout of 2m by default",
			Brief: true, Rows: rows,
		},
	}
}

// set is the flag set of check.
func (f *checkFlags) set() *pflag.FlagSet { return f.options.Flags("check", f.groups()) }

// checking is one run of check.
type checking struct {
	app   *app
	flags *checkFlags
	words *announce.Announcer
	end   files.Termination
	code  int // of what has been printed
}

// checkNodes runs one agent that checks the nodes of a job.
func (a *app) checkNodes(args []string) int {
	if h := newHostsRun(a, "check", args); h != nil {
		return h.run()
	}
	words := announce.New(a.console)
	c := &checking{
		app: a, flags: newCheckFlags(), words: words,
		end: files.Termination{
			Env: a.env, Console: a.console, Limit: &files.Limit{},
		},
	}
	local, err := c.plan(args)
	if _, is := errors.AsType[*agent.ProblemError](err); is {
		return c.codeOf(agent.Result{}, err)
	}
	if err != nil {
		c.end.By(err, codeUsage, err.Error())
		return a.usage(err, "check")
	}
	result, err := local.Run(context.Background())
	code := max(c.code, c.codeOf(result, err))
	if err == nil {
		c.end.With(result, code)
	}
	return code
}

// plan reads the command line and plans the agent.
func (c *checking) plan(args []string) (*agent.Local, error) {
	a, o := c.app, c.flags.options
	words, err := flags.Parse(c.flags.set(), args, a.env)
	if err != nil {
		return nil, flags.Join(err, o.Check(a.env))
	}
	c.words.SetCommand("check", args[:len(args)-len(words)], words)
	program, badProgram := a.program("check", words, o)
	problems, err := o.CheckFiles(a.process())
	if err = errors.Join(badProgram, err, o.Check(a.env)); err != nil {
		return nil, err
	}
	if err := agent.CheckLimits(); err != nil {
		return nil, err
	}
	a.console.Set(o.Output.Quiet, o.Output.Verbose)
	config := o.Config(a.process())
	config.Check = &agent.Check{
		Report: func(r check.Report) { c.code = a.showCheck(c.flags.json, r) },
	}
	config.Program, config.Problems = program, problems
	config.WorkerPerGPU = config.WorkerPerGPU && !advice.StartsWorkers(program)
	config.Events = c.event
	config.StoreFailed = func(err error) { os.Exit(c.codeOf(agent.Result{}, err)) }
	local, err := agent.Place(config)
	return local, insideWorker("check", err, "--launcher none checks nevertheless")
}

// event writes what an event means, but for the problems and differences of nodes, which are
// in the report.
func (c *checking) event(event agent.Event) {
	if !inCheckReport(event) {
		c.words.Event(event)
	}
}

// inCheckReport tells whether the report of check says what an event means.
func inCheckReport(event agent.Event) bool {
	switch e := event.(type) {
	case agent.NodesDiffer:
		return true
	case agent.JobEnded:
		return e.Verdict != nil && e.Verdict.Kind == rdzv.Unready && e.Leads
	}
	return false
}

// showCheck prints the report of check.
func (a *app) showCheck(asJSON bool, r check.Report) int {
	table := func(to console.Destination) string { return tables.Check(r, to) }
	return a.show(asJSON, r, table)
}

// codeOf is the exit code of check, which says how the job ended.
func (c *checking) codeOf(result agent.Result, err error) int {
	var late *agent.JoinTimeoutError
	var signal *agent.SignalError
	var message string
	switch {
	case errors.As(err, &late):
		message = late.Error()
		c.app.fail(late)
	case errors.As(err, &signal):
		message = signal.Error()
		c.app.console.Info("%s", message)
	case err != nil:
		err = fmt.Errorf("cannot check the nodes: %w", err)
		message = err.Error()
		c.app.fail(err)
	}
	code := checkCode(agent.ExitCode(result, err))
	c.end.By(err, code, message)
	return code
}

// checkCode is the exit code of check for that of exec.
func checkCode(code int) int {
	if code != 0 && code <= agent.CodeSignal {
		return codeUnknown
	}
	return code
}
