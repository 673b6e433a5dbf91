package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/cmd/rdzv/internal/advice"
	"rdzv/cmd/rdzv/internal/announce"
	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/files"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
	"rdzv/cmd/rdzv/internal/starter"
	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/check"
	"rdzv/rdzv/secret"
	"rdzv/wrap"
)

// remoteCommand is the command line of rdzv on a host that "exec --hosts" has logged in to. It is
// no command for users.
var remoteCommand = []string{"remote"}

// remote runs the agent of a node for a starter, which tells it on stdin what to do, and gets on
// stdout what it reports.
func (a *app) remote() int {
	in, out, err := takeStreams()
	if err != nil {
		return a.fail(err)
	}
	host, _ := os.Hostname()
	link, err := starter.Accept(in, out, cmp.Or(host, "localhost"))
	switch {
	case errors.Is(err, starter.ErrNotStarted): // which says why
		return agent.CodeAgent
	case err != nil:
		a.console.Fail(err)
		return agent.CodeAgent
	}
	r := newRemote(a, link)
	code := r.run()
	link.Exit(code)
	return code
}

// takeStreams returns stdin and stdout of this process, and puts /dev/null in their place: what it
// executes must not read or write there.
func takeStreams() (in, out *os.File, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	defer null.Close()
	var streams [2]*os.File
	for fd := range streams {
		copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err == nil {
			err = unix.Dup2(int(null.Fd()), fd)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("cannot take over stdin and stdout: %w", err)
		}
		streams[fd] = os.NewFile(uintptr(copied), "starter")
	}
	return streams[0], streams[1], nil
}

// remoteRun is one run of an agent for a starter.
type remoteRun struct {
	app     *app
	link    *starter.Agent
	console *console.Console
	about   starter.Subject // of what the console writes
	words   *announce.Announcer
	options *options.Options
	report  *files.Report
	events  *files.Events
	files   []func() // which close what leads to files of the starter
	// searched says that a long search has been reported.
	searched bool
	logs     string // directory that was made for them; "" is none
}

func newRemote(a *app, link *starter.Agent) *remoteRun {
	r := &remoteRun{app: a, link: link, about: starter.Node, options: options.New()}
	r.console = console.PassingTo(func(record console.Record) {
		link.Show(r.about, record)
	}, link.Start.Screen)
	r.words = announce.New(r.console)
	r.words.Describe(thisBuild().version, time.Now)
	r.report = files.NewReport(r.console, &files.Limit{}, thisBuild().version, time.Now)
	return r
}

// run runs the agent and returns its exit code.
func (r *remoteRun) run() int {
	config, err := r.config()
	var local *agent.Local
	if err == nil {
		local, err = agent.Place(config)
	}
	if err == nil {
		r.report.Job = local.Job
	}
	var result agent.Result
	if err == nil {
		result, err = local.Run(r.link.Context())
	}
	code := agent.ExitCode(result, err)
	if r.link.Start.Check {
		code = checkCode(code)
	}
	if err == nil {
		r.report.Ended(result)
	} else {
		r.failed(err, code)
	}
	r.events.Close()
	for _, end := range r.files {
		end()
	}
	if r.logs != "" && os.Remove(r.logs) != nil {
		r.about = starter.Node // each node has another directory
		r.console.Info("the output of each rank on %s is in %s", r.link.Name(),
			filepath.Join(r.logs, "latest"))
	}
	return code
}

// failed tells the error that ended this agent but not a job.
func (r *remoteRun) failed(err error, code int) {
	r.about = starter.Ended
	if signal, is := errors.AsType[*agent.SignalError](err); is {
		r.console.Info("%v", signal)
	} else {
		r.console.Fail(err)
	}
	r.report.Write(files.ByError, code, err.Error())
}

// config is the configuration of the agent: by the flags and variables that the starter was given,
// and by the environment of the login, in which the starter's exports replace variables.
func (r *remoteRun) config() (c agent.Config, err error) {
	start := r.link.Start
	command, set := "exec", r.options.ExecFlags
	if start.Check {
		checked := newCheckFlags()
		command, set, r.options = "check", checked.set, checked.options
	}
	o := r.options
	environ := environOf(r.app.environ, start.Export)
	env := envmap.ParseEnv(environ)
	variables := envmap.ParseEnv(start.Variables)
	if _, err := flags.Parse(set(), start.Flags, variables); err != nil {
		return c, err
	}
	o.Settings.Framed = true
	if err := o.Check(env); err != nil {
		return c, err
	}
	r.console.Set(o.Output.Quiet, o.Output.Verbose)
	if _ = os.Chdir(start.Dir); !filepath.IsAbs(o.Settings.Dir) { // the agent checks the directory
		o.Settings.Dir = filepath.Join(start.Dir, o.Settings.Dir)
	}
	program, err := r.app.program(command, start.Program, o)
	if err != nil {
		return c, err
	}
	c = o.Config(options.Process{
		Environ: environ, Env: env, Console: r.console,
		Stdin: r.link.Stdin, Stdout: r.link.Stdout, Stderr: r.link.Stderr,
	})
	c.Program, c.Problems, c.PythonDir = program, missingEnvironment(env), ""
	if start.Check {
		c.Check = &agent.Check{Report: r.checked}
	}
	c.WorkerPerGPU = c.WorkerPerGPU && !advice.StartsWorkers(program)
	c.Launcher, c.Nodes, c.NodeRank, c.Started = envmap.None, start.Nodes, &start.Node, true
	c.Job, c.Token, c.ShowJoinLine = start.Job, start.Token, false
	c.Export, c.ExportFile, c.Tag, c.Framed = nil, "", nil, true
	if start.Workers > 0 {
		c.ProcsPerNode = fmt.Sprint(start.Workers)
	}
	c.Line = new(wrap.Line)
	r.console.Follow(c.Line)
	c.DescribeStall, c.RankTimes = announce.StallText, o.Output.ReportFile != ""
	c.Events, c.StoreFailed = r.event, func(err error) {
		r.failed(err, agent.CodeAgent)
		r.link.Exit(agent.CodeAgent)
		os.Exit(agent.CodeAgent)
	}
	if err := r.openFiles(&c); err != nil {
		return c, err
	}
	if start.Node > 0 {
		c.Join, err = r.joinLine()
	}
	return c, err
}

// checked sends the report of check.
func (r *remoteRun) checked(report check.Report) {
	text, err := json.Marshal(report)
	if err != nil {
		r.console.Fail(fmt.Errorf("cannot report on the nodes: %w", err))
	}
	r.link.Write("report", text)
}

// joinLine waits until the first node hosts the store.
func (r *remoteRun) joinLine() (string, error) {
	addrs, err := r.link.Join()
	if err != nil {
		return "", err
	}
	job := r.link.Start.Job
	if r.link.Start.Check {
		job = agent.CheckName(job)
	}
	key := secret.DeriveKey([]byte(r.link.Start.Token), job)
	return strings.Join(addrs, ",") + "/" + key.Reveal(), nil
}

// openFiles opens those that the agent writes: of the starter, for the first node, and logs here.
func (r *remoteRun) openFiles(c *agent.Config) (err error) {
	out := &r.options.Output
	if r.link.Start.Node > 0 {
		out.ReportFile, out.EventFile = "", ""
	}
	for _, path := range []*string{&out.ReportFile, &out.EventFile} {
		if *path == "" {
			continue
		}
		leading, end, err := r.link.File(*path)
		if err != nil {
			return err
		}
		*path, r.files = leading, append(r.files, end)
	}
	r.report.To(out.ReportFile, c.Program)
	r.events = files.NewEvents(out.EventFile, &files.Limit{}, func(err error) {
		r.console.Warn("%v", err)
	})
	if out.TemporaryLogs {
		if c.LogDir, err = os.MkdirTemp(c.LogDir, "rdzv-logs-"); err != nil {
			return fmt.Errorf("cannot make a log directory for --redirects: %w", err)
		}
		r.logs = c.LogDir
	}
	return nil
}

// environOf is the environment of a login with the exports of the starter, without variables of
// rdzv. The directories of the login's PATH come after those of the starter's.
func environOf(login, exports []string) []string {
	login = slices.DeleteFunc(slices.Clone(login), func(entry string) bool {
		return strings.HasPrefix(entry, "RDZV_")
	})
	own := filepath.SplitList(envmap.ParseEnv(login)["PATH"])
	environ, _ := envmap.Override(login, exports)
	path := filepath.SplitList(envmap.ParseEnv(environ)["PATH"])
	for _, dir := range own {
		if !slices.Contains(path, dir) {
			path = append(path, dir)
		}
	}
	environ, _ = envmap.Override(environ, []string{"PATH=" + strings.Join(path, ":")})
	return environ
}

// missingEnvironment finds the environment of python that was active where the job was started, and
// does not exist here: the program would run with another python.
func missingEnvironment(env envmap.Env) (problems []rdzv.Problem) {
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		path := env[name]
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			problems = append(problems, rdzv.Problem{
				Kind: rdzv.OtherProblem,
				Text: fmt.Sprintf("cannot use %s %q: %v", name, path, files.Cause(err)),
				Hint: "make the same environment on this host, or deactivate it where rdzv is started",
			})
		}
	}
	return problems
}

// longSearch is after how long a node that does not reach the first one says so: ssh connects the
// starter with it, and a firewall may be between the nodes.
const longSearch = 5 * time.Second

// cannotJoin says once that the store of the first node is not reached, and what to look at.
func (r *remoteRun) cannotJoin(e agent.Searching) {
	if r.searched || e.Waited < longSearch {
		return
	}
	r.searched, r.about = true, starter.Node
	r.console.Info("%s cannot join yet: %v", r.link.Name(), e)
	r.console.Hint("do all TCP ports between the nodes allow connections, not only that of ssh?")
}

// aboutEnd is what the line about the end of the job is about.
func aboutEnd(v *rdzv.Verdict) starter.Subject {
	switch {
	case v != nil && v.Kind == rdzv.Failed:
		return starter.Failed
	case v != nil && v.Kind == rdzv.Ended && v.PID != 0 && !v.Caller:
		return starter.Signalled
	}
	return starter.Ended
}

// event handles one event of the agent.
func (r *remoteRun) event(event agent.Event) {
	r.events.Event(event)
	if r.link.Start.Check && inCheckReport(event) {
		return
	}
	r.about = starter.Job
	switch event := event.(type) {
	case agent.Placed:
		r.link.CatchSignals()
		event.Launcher = "--hosts" // otherwise users are told how to start other nodes
		r.words.Event(event)
		return
	case agent.StoreFound:
		if event.Hosting {
			r.link.Found(event.Addrs)
		}
	case agent.NoPeerYet:
		return
	case agent.Searching:
		if r.link.Start.Node > 0 {
			r.cannotJoin(event)
			return
		}
	case agent.WorldAgreed:
		r.report.Agreed(event.World)
	case agent.Stalled:
		r.report.Stalled(event)
	case agent.JobEnded:
		r.about = aboutEnd(event.Verdict)
		defer r.report.Early(event)
	case agent.FailureReported:
		r.about = starter.Failure
	case agent.EnvironmentNote, agent.Diagnostic, agent.LogLost, agent.OutputLost,
		agent.DumpingStacks, agent.Settling, agent.WorkerExited:
		r.about = starter.Node
	}
	r.words.Event(event)
}
