package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"rdzv/cmd/rdzv/internal/advice"
	"rdzv/cmd/rdzv/internal/announce"
	"rdzv/cmd/rdzv/internal/files"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
	"rdzv/cmd/rdzv/internal/role"
	"rdzv/cmd/rdzv/internal/turn"
	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/etcd"
	"rdzv/wrap"
)

// exec runs one agent and returns the job's exit code.
func (a *app) exec(args []string) int {
	if h := newHostsRun(a, "exec", args); h != nil {
		return h.run()
	}
	signals := make(chan os.Signal, 1)
	words := announce.New(a.console)
	words.Describe(thisBuild().version, a.now)
	limit := &files.Limit{Signals: signals}
	e := &execution{
		app: a, options: options.New(), signals: signals, words: words, limit: limit,
		report: files.NewReport(a.console, limit, thisBuild().version, time.Now),
		end:    files.Termination{Env: a.env, Console: a.console, Limit: limit},
	}
	e.others, e.missing = awaitTasks(context.Background())
	defer e.endLogs()
	local, err := e.plan(args)
	e.turns = turn.Catch() // not before: SIGTERM ends an agent that waits for a file
	if err != nil {
		code, message := agent.ExitCode(agent.Result{}, err), err.Error()
		e.report.Write(files.ByError, code, message)
		e.end.By(err, code, message)
		a.usage(err, "exec")
		e.exit(code, turn.First{}, envmap.Placement{})
		return code
	}
	e.report.Job, e.announce = local.Job, local.FirstOfNode()
	if local.FirstOfJob() {
		a.advise(e.program, e.options)
	}
	result, err := local.Run(context.Background())
	code := agent.ExitCode(result, err)
	if err != nil {
		e.endedBy(err, code)
	} else {
		e.end.With(result, code)
		e.report.Ended(result)
		if code != 0 && local.FirstOfJob() {
			a.adviseLauncher(e.program)
		}
	}
	e.events.Close()
	e.exit(code, firstFailed(result, e.host, local.Workers), local.Placement)
	return code
}

// execution is one run of exec.
type execution struct {
	app      *app
	options  *options.Options
	program  []string
	signals  chan os.Signal // those that catchSignals keeps
	words    *announce.Announcer
	limit    *files.Limit // for these
	report   *files.Report
	end      files.Termination
	events   *files.Events
	logs     string         // directory that was made for them; "" is none
	problems []rdzv.Problem // of the files of report and events
	host     string         // name of this node
	announce bool           // tell the user what all agents of this node know
	turns    turn.Signals
	others   otherTasks // of this node, whose workers this agent runs too
	missing  bool       // not all tasks of this node have come
}

// plan reads the command line and plans the agent.
func (e *execution) plan(args []string) (*agent.Local, error) {
	if err := e.read(args); err != nil {
		return nil, err
	}
	e.app.console.Timed(e.app.now)
	if err := agent.CheckLimits(); err != nil {
		return nil, err
	}
	own, output := e.app.console, e.options.Output
	own.Set(output.Quiet, output.Verbose)
	e.events = files.NewEvents(output.EventFile, e.limit, func(err error) { own.Warn("%v", err) })
	config := e.options.Config(e.app.process())
	if output.TemporaryLogs {
		var err error
		if config.LogDir, err = os.MkdirTemp(config.LogDir, "rdzv-logs-"); err != nil {
			return nil, fmt.Errorf("cannot make a log directory for --redirects: %w", err)
		}
		e.logs = config.LogDir
		e.nameLogs()
	}
	config.Program, config.Problems = e.program, e.problems
	config.WorkerPerGPU = config.WorkerPerGPU && !advice.StartsWorkers(e.program)
	config.Tasks, config.TasksMissing = e.others.forAgent(config), e.missing
	if role.Err != nil {
		own.Verbose("one agent per task: %v", role.Err)
	}
	config.Line = new(wrap.Line)
	own.Follow(config.Line)
	config.DescribeStall, config.RankTimes = announce.StallText, output.ReportFile != ""
	config.Events, config.StoreFailed = e.event, e.storeFailed
	local, err := agent.Place(config)
	return local, insideWorker("exec", err,
		"a worker cannot start another job; --launcher none starts one nevertheless")
}

// endLogs says at the end where the output is, or removes the directory if no worker was started.
func (e *execution) endLogs() {
	if e.logs != "" && os.Remove(e.logs) != nil {
		e.nameLogs()
	}
}

// nameLogs says where the output of ranks is, if the user has not chosen that.
func (e *execution) nameLogs() {
	if e.logs != "" {
		e.app.console.Info("the output of each rank is in %s", filepath.Join(e.logs, "latest"))
	}
}

// read takes the flags and the program.
func (e *execution) read(args []string) error {
	words, err := flags.Parse(e.options.ExecFlags(), args, e.app.env)
	if err != nil { // --report, too, or the beginning of the program may have been misread
		return flags.Join(err, e.options.Check(e.app.env))
	}
	e.words.SetCommand("exec", args[:len(args)-len(words)], words)
	program, badProgram := e.app.program("exec", words, e.options)
	if len(words) == 0 {
		badProgram = hint.With(errors.New("cannot run exec: no program given"),
			"rdzv exec -- python3 main.py")
	}
	if badProgram == nil {
		if e.problems, err = e.options.CheckFiles(e.app.process()); err != nil {
			return err // a report of it could replace the other file
		}
		e.program = program
		e.report.To(e.options.Output.ReportFile, program)
	}
	return flags.Join(badProgram, e.options.Check(e.app.env))
}

// event handles one event of the agent.
func (e *execution) event(event agent.Event) {
	e.events.Event(event)
	switch event := event.(type) {
	case agent.Placed:
		e.host = event.Host
		catchSignals(e.signals)
	case agent.WorldAgreed:
		e.report.Agreed(event.World)
	case agent.Stalled:
		e.report.Stalled(event)
	case agent.JobEnded:
		defer e.report.Early(event) // it may take some seconds
	}
	e.words.Event(event)
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

// storeFailed exits because etcd is about to end this process. The runner kills the workers, and
// the other agents notice the loss of the store.
func (e *execution) storeFailed(err error) {
	e.endedBy(err, agent.CodeAgent)
	os.Exit(agent.CodeAgent)
}

// endedBy reports the error that ended this agent but not a job.
func (e *execution) endedBy(err error, code int) {
	var late *agent.JoinTimeoutError
	var signal *agent.SignalError
	_, ofEtcd := errors.AsType[*etcd.UnavailableError](err)
	kind, own := files.ByError, e.app.console
	switch {
	case errors.As(err, &late):
		err, kind = late, string(rdzv.Incomplete)
		own.Fail(err)
	case errors.As(err, &signal):
		err, kind = signal, string(rdzv.Ended)
		if e.announce {
			own.Info("%v", err)
		}
	case ofEtcd && !e.announce: // another agent of this node prints the same
		own.Verbose("%v", err)
	default:
		own.Fail(err)
	}
	e.end.By(err, code, err.Error())
	if signal == nil || !signal.Withdrawn { // otherwise the job has not ended
		e.report.Write(kind, code, err.Error())
	}
}

// firstFailed is the task whose worker failed first. host is the name of this node, workers the
// number of workers of each task.
func firstFailed(r agent.Result, host string, workers int) turn.First {
	v := r.Verdict
	if v == nil || v.Kind != rdzv.Failed || r.Unreported { // then that task has ended already
		return turn.First{}
	}
	first := turn.First{Known: true, Own: r.Ended.Own, Local: envmap.Unknown}
	if v.Host == host {
		first.Local = v.LocalRank / max(workers, 1)
	}
	return first
}

// exit makes all tasks exit with code, this one last, and returns when it may.
func (e *execution) exit(code int, first turn.First, own envmap.Placement) {
	e.others.exit(code, first)
	e.turns.Await(turn.Of(own, e.app.env, code, first))
}
