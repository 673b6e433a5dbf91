package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// exec runs one agent and returns the job's exit code.
func (a *app) exec(args []string) int {
	e := &execution{app: a, options: &options{}}
	e.report.failed = func(err error) { a.console.Warn("%v", err) }
	local, err := e.plan(args)
	if err != nil {
		code := agent.ExitCode(agent.Result{}, err)
		e.report.ended(endedByError, code, err.Error())
		return a.usage(code, err, "exec")
	}
	e.report.Job = local.Job
	signals := catchTurnSignals()
	code := e.run(local)
	awaitTurn(signals, local.Placement, a.env, code)
	return code
}

// run runs the agent, and returns the job's exit code.
func (e *execution) run(local *agent.Local) int {
	result, err := local.Run(context.Background())
	if err != nil {
		return e.notJoined(err)
	}
	e.report.result(result)
	return agent.ExitCode(result, nil)
}

// execution is one run of exec.
type execution struct {
	*app
	*options
	program []string
	report  report
}

// plan reads the command line and plans the agent.
func (e *execution) plan(args []string) (*agent.Local, error) {
	if err := e.read(args); err != nil {
		return nil, err
	}
	if err := agent.EnoughFiles(); err != nil {
		return nil, fmt.Errorf("cannot run exec: %w", err)
	}
	e.console.Set(e.quiet, e.verbose, e.joinTimeout)
	local, err := agent.Plan(e.config(e.app, e.program, e.event, e.storeFailed))
	return local, insideWorker("exec", err,
		"a worker cannot start another job; --launcher none starts one nevertheless")
}

// read takes the flags and the program.
func (e *execution) read(args []string) error {
	f := newFlags("exec")
	e.define(f)
	e.defineExec(f)
	program, dashes, err := parse(f, args, e.env)
	switch {
	case err != nil:
		return err // --report too may have been misread
	case len(program) == 0:
		return hinted{errors.New("cannot run exec: no program given"), "rdzv exec -- python3 main.py"}
	case !dashes:
		err := fmt.Errorf("cannot run exec: no -- before the program %q", program[0])
		return hinted{err, inOrder(args, program)}
	}
	e.program = program
	e.report.file, e.report.Program, e.report.joinTimeout = e.reportFile, program, e.joinTimeout
	return e.check()
}

// inOrder is the command line that was probably meant if "--" is missing: with the flags of exec
// before the program, as mpirun and torchrun require it too.
func inOrder(args, program []string) string {
	flags := args[:len(args)-len(program)]
	f := newFlags("exec")
	o := &options{}
	o.define(f)
	o.defineExec(f)
	f.SetInterspersed(true)
	if f.Parse(program) == nil {
		flags, program = slices.Concat(flags, without(program, f.Args())), f.Args()
	}
	return strings.Join(slices.Concat([]string{"rdzv exec"}, flags, []string{"--"}, program), " ")
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

// config is the agent's configuration by the flags and by this process.
func (o *options) config(a *app, program []string, event func(agent.Event), storeFailed func(error)) agent.Config {
	return agent.Config{
		Program: program, Environ: a.environ, Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr,
		Launcher: envmap.Launcher(o.launcher), Nodes: o.nodes, ProcsPerNode: o.procs, Job: o.job,
		Store: o.store, Join: a.env["RDZV_JOIN"], Token: a.env["RDZV_TOKEN"], TokenFile: o.tokenFile,
		Insecure: o.insecure, Networks: o.net, PortLow: o.portLo, PortHigh: o.portHi,
		JoinTimeout: o.joinTimeout, PeerTimeout: o.peerTimeout, Grace: o.grace, ExitTimeout: o.exitTimeout,
		MasterPort: o.masterPort, Device: envmap.DeviceMode(o.device), Set: o.set, AsOpenMPI: o.as == "openmpi",
		NoCapture: o.noCapture, ShowJoinLine: a.console.Terminal(), Events: event, StoreFailed: storeFailed,
	}
}

// event handles one event of the agent.
func (e *execution) event(event agent.Event) {
	switch event := event.(type) {
	case agent.Placed:
		catchSignals()
	case agent.WorldAgreed:
		e.report.WorldSize = event.World.Size
	case agent.JobEnded:
		e.report.early(event)
	}
	e.console.Event(event)
}

// storeFailed exits because etcd is about to end this process. The watchdog kills the workers, and
// the other agents notice the loss of the store.
func (e *execution) storeFailed(err error) { os.Exit(e.exitWith(agent.CodeAgent, err)) }

// notJoined prints why this agent did not join a job, and returns the exit code.
func (e *execution) notJoined(err error) int {
	code := agent.ExitCode(agent.Result{}, err)
	var late *agent.JoinTimeoutError
	var signal *agent.SignalError
	switch {
	case errors.As(err, &late):
		e.report.ended(string(rdzv.Incomplete), code, late.Error()+" (--join-timeout)")
		e.console.JoinTimedOut(late)
		return code
	case errors.As(err, &signal):
		e.report.ended(string(rdzv.Ended), code, e.console.EndedBySignal(signal))
		return code
	}
	return e.exitWith(code, err)
}

// exitWith prints an error that ends this agent but not the job, and returns the code.
func (e *execution) exitWith(code int, err error) int {
	e.report.ended(endedByError, code, err.Error())
	e.console.Fail(err)
	return code
}
