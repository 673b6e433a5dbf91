package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/eventfile"
	"rdzv/cmd/rdzv/internal/flagname"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/etcd"
	"rdzv/wrap"
)

// exec runs one agent and returns the job's exit code.
func (a *app) exec(args []string) int {
	e := &execution{app: a, options: newOptions(), report: report{console: a.console}}
	e.report.signals = make(chan os.Signal, 1)
	local, err := e.plan(args)
	if err != nil {
		code, message := agent.ExitCode(agent.Result{}, err), flagname.In(err.Error())
		e.report.write(endedByError, code, message, nil)
		a.terminatedBy(err, code, message)
		a.usage(err, "exec")
		return code
	}
	e.report.Job, e.announce = local.Job, local.FirstOfNode()
	if local.Placement.Rank <= 0 {
		e.advise(local.Config.Program)
	}
	signals := catchTurnSignals()
	result, err := local.Run(context.Background())
	code := agent.ExitCode(result, err)
	if err != nil {
		e.endedBy(err, code)
	} else {
		e.terminatedWith(result, code)
		e.report.result(result)
	}
	e.events.Close()
	awaitTurn(signals, local.Placement, a.env, code, firstExitOf(result, e.host, local.Workers))
	return code
}

// execution is one run of exec.
type execution struct {
	*app
	*options
	report   report
	events   *eventfile.File
	problems []rdzv.Problem // of the files of report and events
	host     string         // name of this node
	announce bool           // tell the user what all agents of this node know
}

// plan reads the command line and plans the agent.
func (e *execution) plan(args []string) (*agent.Local, error) {
	if err := e.read(args); err != nil {
		return nil, err
	}
	if err := agent.CheckLimits(); err != nil {
		return nil, fmt.Errorf("cannot run exec: %w", err)
	}
	e.console.Set(e.quiet, e.verbose, e.joinTimeout)
	e.events = eventfile.New(e.eventFile, func(err error) { e.console.Warn("%v", err) })
	config := e.config(e.app)
	config.Problems = e.problems
	config.Line = new(wrap.Line)
	e.console.Follow(config.Line)
	config.DescribeStall = console.StallText
	config.Program, config.Events, config.StoreFailed = e.report.Program, e.event, e.storeFailed
	local, err := agent.Plan(config)
	return local, insideWorker("exec", err,
		"a worker cannot start another job; --launcher none starts one nevertheless")
}

// event handles one event of the agent.
func (e *execution) event(event agent.Event) {
	e.events.Event(event)
	switch event := event.(type) {
	case agent.Placed:
		e.host = event.Host
		catchSignals(e.report.signals)
	case agent.WorldAgreed:
		w := event.World
		e.report.WorldSize, e.report.Attempt = w.Size, w.Attempt
		e.report.rank0 = w.Seat.Rank == 0 && !w.Seat.Spare
	case agent.Stalled:
		e.report.stalled(event)
	case agent.JobEnded:
		defer e.report.early(event) // it may take some seconds
	}
	e.console.Event(event)
}

// catchSignals keeps the signals that an agent acts on until it has returned from changing the exit
// code after that: a launcher that ends the job because an agent has failed sends SIGTERM at that
// moment. It is called when the agent has begun to act on them, so that none is lost. Signals that
// are ignored stay so, also in the workers.
func catchSignals(caught chan<- os.Signal) {
	for _, s := range []os.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE,
	} {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
}

// storeFailed exits because etcd is about to end this process. The holder kills the workers, and
// the other agents notice the loss of the store.
func (e *execution) storeFailed(err error) {
	e.endedBy(err, agent.CodeAgent)
	os.Exit(agent.CodeAgent)
}

// endedBy reports the error that ended this agent but not a job.
func (e *execution) endedBy(err error, code int) {
	var late *agent.JoinTimeoutError
	var signal *agent.SignalError
	message := flagname.In(err.Error())
	switch {
	case errors.As(err, &late):
		message = e.console.JoinTimedOut(late)
	case errors.As(err, &signal):
		message = e.console.EndedBySignal(signal, e.announce)
	}
	e.terminatedBy(err, code, message)
	switch {
	case late != nil:
		e.report.write(string(rdzv.Incomplete), code, message, nil)
	case signal != nil && signal.Withdrawn: // the job has not ended
	case signal != nil:
		e.report.write(string(rdzv.Ended), code, message, nil)
	default:
		e.report.write(endedByError, code, message, nil)
		_, ofEtcd := errors.AsType[*etcd.UnavailableError](err)
		if ofEtcd && !e.announce { // another agent of this node prints the same
			e.console.Verbose("%s", message)
			return
		}
		e.console.Fail(err)
	}
}
