package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/check"
)

const checkHelp = `Usage: rdzv check [flags] [-- PROGRAM [ARG]...]

    mpirun -np 4 rdzv check -- python3 main.py
    srun -N2 --ntasks-per-node=8 rdzv check -- python3 main.py
    rdzv check --nodes 2 -- python3 main.py                        on every node

Start it like "rdzv exec": its agents join, compare their nodes, and exit. No
worker is started. One agent prints a table of all nodes to stdout: one row per
fact, with the nodes that have each value if they differ. Rows marked "!" are
explained below the table, "*" marks other differences. Facts are read from
files; without PROGRAM only those of the nodes are compared. --deep and
--health-cmd run programs, on each node before its agents join. Every node
connects to every other, or to a sample if there are more than 64 nodes.

{flags}

Exit status, the same for every agent:
    0        exec would start PROGRAM
    1        exec would fail, not all agents have joined, or two nodes cannot
             connect to each other
    2        wrong usage
    128+N    signal N ended the check
`

// checkGroups are the flags of check as its help shows them.
func (o *options) checkGroups() []group {
	var rows []flagRow
	for _, g := range o.execGroups() {
		rows = append(rows, g.rows...)
	}
	return []group{
		{rows: []flagRow{
			{"--json", "print the report as one JSON object", &o.json},
			{"--deep", "also import torch on each node", &o.deep},
			{"--check-timeout D", "time limit of --deep, and of the command of --health-cmd, which has to " +
				"exit with 0 on each node (1m)", &o.checkTimeout},
		}},
		{
			title: "The flags of exec work here too, with a --join-timeout of 2m by default",
			brief: true, rows: rows,
		},
	}
}

// newCheckOptions has the defaults of all flags of check.
func newCheckOptions() *options {
	o := newOptions()
	o.joinTimeout, o.checkTimeout = 2*time.Minute, time.Minute
	return o
}

// checkNodes runs one agent that checks the nodes of a job.
func (a *app) checkNodes(args []string) int {
	o := newCheckOptions()
	program, _, err := parse(o.define("check", o.checkGroups()), args, a.env)
	var problems []rdzv.Problem
	if err == nil {
		problems, err = o.checkOutputs(a)
		err = errors.Join(err, o.check(a.env), agent.CheckLimits())
	}
	if err != nil {
		a.terminatedBy(err, codeUsage, err.Error())
		return a.usage(err, "check")
	}
	a.console.Set(o.quiet, o.verbose, o.joinTimeout)
	config, printed := o.config(a), codeOK
	config.Program, config.Problems = program, problems
	config.Events, config.HealthCmd = a.checkEvent, ""
	config.StoreFailed = func(err error) { os.Exit(a.checkCode(agent.Result{}, err)) }
	config.Check = &agent.Check{
		Report: func(r check.Report) { printed = a.printReport(o, r) },
		Deep:   o.deep, Health: o.health, Limit: o.checkTimeout,
	}
	local, err := agent.Plan(config)
	if err != nil {
		err = insideWorker("check", err, "--launcher none checks nevertheless")
		a.terminatedBy(err, codeUsage, err.Error())
		return a.usage(err, "check")
	}
	result, err := local.Run(context.Background())
	code := max(printed, a.checkCode(result, err))
	if err == nil {
		a.terminatedWith(result, code)
	}
	return code
}

// checkEvent writes what an event means, but for the problems and differences of nodes, which are
// in the report.
func (a *app) checkEvent(event agent.Event) {
	switch e := event.(type) {
	case agent.NodesDiffer:
		return
	case agent.JobEnded:
		if e.Verdict != nil && e.Verdict.Kind == rdzv.Unready && e.Leads {
			return
		}
	}
	a.console.Event(event)
}

func (a *app) printReport(o *options, r check.Report) int {
	console.WriteFlags(r)
	if o.json {
		return a.print(string(indented(r)))
	}
	return a.print(a.painted(console.CheckTable(r, a.onTerminal().Width()), console.CheckMarks))
}

// checkCode is the exit code of check for that of exec.
func (a *app) checkCode(result agent.Result, err error) int {
	var late *agent.JoinTimeoutError
	var signal *agent.SignalError
	var message string
	switch {
	case errors.As(err, &late):
		message = a.console.JoinTimedOut(late)
	case errors.As(err, &signal):
		message = a.console.EndedBySignal(signal, true)
	case err != nil:
		err = fmt.Errorf("cannot check the nodes: %w", err)
		message = err.Error()
		a.fail(err)
	}
	code := agent.ExitCode(result, err)
	if code != 0 && code <= agent.CodeSignal {
		code = codeUnknown
	}
	a.terminatedBy(err, code, message)
	return code
}
