package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/files"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
	"rdzv/cmd/rdzv/internal/starter"
	"rdzv/cmd/rdzv/internal/starter/hosts"
	"rdzv/cmd/rdzv/internal/starter/login"
	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/check"
	"rdzv/rdzv/secret"
)

// hostsRun is one run of exec or check that starts its job on other hosts.
type hostsRun struct {
	app     *app
	check   *checkFlags // nil for exec
	options *options.Options
	flags   []string // as they were given
	program []string
	hosts   []hosts.Host
	here    int // which of them is this machine; -1: none
	report  *files.Report
	written []byte   // of the report, by the first node
	events  *os.File // nil until the first one comes
	// eventsLost says that the file of events cannot be written.
	eventsLost bool
	checked    []byte // the report of check, by the first node
}

// newHostsRun is nil unless the flags name hosts. It is for the command to say what else is wrong
// with them.
func newHostsRun(a *app, command string, args []string) *hostsRun {
	h := &hostsRun{app: a, options: options.New(), here: -1}
	set := h.options.ExecFlags
	if command == "check" {
		h.check = newCheckFlags()
		h.options, set = h.check.options, h.check.set
	}
	words, err := flags.Parse(set(), args, a.env)
	if err != nil || !h.options.Hosts.Given() {
		return nil
	}
	h.flags, h.program = args[:len(args)-len(words)], words
	return h
}

// command is the name of the command.
func (h *hostsRun) command() string {
	if h.check != nil {
		return "check"
	}
	return "exec"
}

// run starts the job and returns its exit code.
func (h *hostsRun) run() int {
	a := h.app
	a.console.Set(h.options.Output.Quiet, h.options.Output.Verbose)
	h.report = files.NewReport(a.console, &files.Limit{}, thisBuild().version, time.Now)
	config, err := h.plan()
	if err != nil {
		a.usage(err, h.command())
		if h.check != nil {
			return codeUsage
		}
		return h.end(agent.CodeAgent, err)
	}
	signals := make(chan os.Signal, 16)
	for _, s := range starter.Signals {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	config.Signals = signals
	if h.check == nil {
		a.console.Timed(a.now)
	}
	code, err := h.codeOf(starter.Run(config))
	if h.check != nil {
		return max(checkCode(code), h.printCheck())
	}
	return h.end(code, err)
}

// codeOf is the exit code by the result of the starter, whose error it prints.
func (h *hostsRun) codeOf(code int, err error) (int, error) {
	a := h.app
	interrupted, isSignal := errors.AsType[*agent.SignalError](err)
	failed, isFailed := errors.AsType[*starter.FailedError](err)
	switch {
	case err == nil:
		return code, nil
	case isSignal:
		a.console.Info("%v", interrupted)
		return agent.ExitCode(agent.Result{}, interrupted), err
	case isFailed:
		a.console.Fail(failed.Err)
		return failed.Code, err
	}
	a.console.Fail(err)
	return agent.CodeAgent, err
}

// printCheck prints the report of check, if the agents have met.
func (h *hostsRun) printCheck() int {
	if len(h.checked) == 0 {
		return 0
	}
	var r check.Report
	if err := json.Unmarshal(h.checked, &r); err != nil {
		return h.app.fail(fmt.Errorf("cannot read the report on the nodes: %w", err))
	}
	return h.app.showCheck(h.check.json, r)
}

// end writes the report: that of the first node, or why there is none.
func (h *hostsRun) end(code int, err error) int {
	if h.events != nil {
		h.events.Close()
	}
	path := h.options.Output.ReportFile
	switch {
	case path == "":
	case len(h.written) > 0:
		if err := files.WriteReport(path, h.written); err != nil {
			h.app.console.Warn("cannot write the report %q: %v", path, err)
		}
	case err != nil:
		h.report.To(path, h.program)
		h.report.Write(files.ByError, code, err.Error())
	}
	return code
}

// plan reads what is to be started. Nothing is started if anything is wrong with it.
func (h *hostsRun) plan() (c starter.Config, err error) {
	a, o := h.app, h.options
	o.Settings.Framed = true // the output of all workers is read
	given := flags.Join(o.CheckHosts(a.env), o.Check(a.env))
	program, err := a.program(h.command(), h.program, o)
	if err == nil && len(program) == 0 && h.check == nil {
		err = hint.With(errors.New("cannot run exec: no program given"),
			"rdzv exec --hosts node1,node2 -- python3 main.py")
	}
	if err == nil && slices.Contains(h.program, "--") && !runnable(program[0]) {
		err = hint.With(fmt.Errorf("cannot run %q: it is not a program here", program[0]),
			hosts.ListForm)
	}
	if h.hosts, given = readHosts(o, given); flags.Join(given, err) != nil {
		return c, flags.Join(given, err)
	}
	local, err := h.place(program)
	if err != nil {
		return c, err
	}
	if problems, err := o.CheckFiles(a.process()); err != nil || len(problems) > 0 {
		if err == nil {
			err = errors.New(problems[0].Text)
		}
		return c, err
	}
	h.here = hereOf(h.hosts)
	start, err := h.start(local.Job)
	c = starter.Config{
		Start: start, Console: a.console, Setting: console.SettingOf(a.env), Stdin: input(a.stdin),
		Stdout: a.stdout, Stderr: a.stderr, Connect: h.connect, Write: h.write,
	}
	if h.check != nil {
		c.Stdin = nil
	}
	if o.Settings.Tag != nil {
		c.Tag = console.Tags(a.stdout, a.stderr, c.Setting)
	}
	for i, one := range h.hosts {
		host := starter.Host{Name: one.Name, Login: one.String(), Workers: one.Workers}
		if i == h.here {
			host.Login = ""
		}
		c.Hosts = append(c.Hosts, host)
	}
	return c, err
}

// runnable tells whether a program exists here, as the first word after a list of hosts must.
func runnable(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

func readHosts(o *options.Options, given error) ([]hosts.Host, error) {
	if given != nil { // there may be two lists
		return nil, given
	}
	return o.Hosts.Read()
}

// place finds the name of the job, and whether a launcher or a resource manager has started this
// process: then it knows the nodes.
func (h *hostsRun) place(program []string) (*agent.Local, error) {
	c := h.options.Config(h.app.process())
	c.Program, c.Nodes, c.Join, c.Token = program, len(h.hosts), "", ""
	if len(program) == 0 { // of check
		c.Program = []string{h.command()}
	}
	local, err := agent.Place(c)
	if err != nil {
		return nil, insideWorker(h.command(), err, "start the job outside of it")
	}
	const advice = "omit --hosts; --launcher none starts a job on these hosts nevertheless"
	if by := local.Placement.Launcher; by != envmap.None {
		return nil, hint.With(fmt.Errorf("cannot use --hosts: %s has started this process", by), advice)
	}
	allocation := envmap.ReadAllocation(h.app.env, os.DirFS("/"))
	if allocation.Nodes >= 1 && c.Launcher != envmap.None {
		return nil, hint.With(fmt.Errorf("cannot use --hosts: this process is in a job of %s, which has "+
			"reserved nodes", allocation.Manager), "start rdzv with "+allocation.Command+", and "+advice)
	}
	return local, nil
}

// start is what all nodes have in common.
func (h *hostsRun) start(job string) (s starter.Start, err error) {
	a := h.app
	s = starter.Start{
		Token: secret.NewToken(), Job: job, Check: h.check != nil, Flags: h.flags, Program: h.program,
		Joined: sameFile(a.stdout, a.stderr), Screen: a.console.Kind(),
	}
	for _, entry := range a.environ {
		if strings.HasPrefix(entry, "RDZV_") {
			s.Variables = append(s.Variables, entry)
		}
	}
	if s.Dir, err = os.Getwd(); err != nil {
		return s, fmt.Errorf("cannot find the current directory: %w", err)
	}
	s.Export, err = h.exports()
	return s, err
}

// defaultExports are what the workers need to run as they would here.
var defaultExports = []string{
	"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "OMP_NUM_THREADS",
}

// defaultPrefixes are those of variables of libraries.
var defaultPrefixes = []string{"NCCL_", "GLOO_", "UCX_", "TORCH_"}

// exports are the variables that all nodes get: those by default, and those of --export.
func (h *hostsRun) exports() ([]string, error) {
	list, err := agent.ReadExports(h.options.Settings.Export, h.options.Settings.ExportFile, h.app.env)
	if err != nil {
		return nil, err
	}
	for _, name := range list.Missing {
		h.app.console.Info("warning: not exporting %s: it is not set here", name)
	}
	var exported []string
	for name, value := range h.app.env {
		hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if slices.Contains(defaultExports, name) || slices.ContainsFunc(defaultPrefixes, hasPrefix) {
			exported = append(exported, name+"="+value)
		}
	}
	exported, _ = envmap.Override(exported, list.Variables)
	if total := len(strings.Join(exported, "\x00")); total > 2*envmap.MaxExported {
		return nil, fmt.Errorf("cannot export variables of %d bytes", total)
	}
	slices.Sort(exported)
	return exported, nil
}

// sameFile tells whether two streams lead to the same place.
func sameFile(a, b *os.File) bool {
	first, errFirst := a.Stat()
	second, errSecond := b.Stat()
	return errFirst == nil && errSecond == nil && os.SameFile(first, second)
}

// input is stdin if rank 0 is to get it, which would take what the user types from the shell; nil
// if not.
func input(stdin *os.File) *os.File {
	info, err := stdin.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice != 0 {
		return nil
	}
	return stdin
}

// write gets what the first node writes to the files of this process.
func (h *hostsRun) write(file string, text []byte) {
	if h.check != nil {
		h.checked = append(h.checked, text...)
		return
	}
	if file == h.options.Output.ReportFile {
		h.written = append(h.written, text...)
		return
	}
	if h.eventsLost {
		return
	}
	var err error
	if h.events == nil {
		h.events, err = files.OpenToAppend(file)
	}
	if err == nil {
		_, err = h.events.Write(text)
	}
	if err != nil {
		h.eventsLost = true
		h.app.console.Warn("cannot write events to %q: %v", file, files.Cause(err))
	}
}

// connect starts the agents: on this machine as a child, on the others by ssh.
func (h *hostsRun) connect(ctx context.Context) (all []*starter.Connection, err error) {
	all = make([]*starter.Connection, len(h.hosts))
	var others []hosts.Host
	for i, one := range h.hosts {
		if i != h.here {
			others = append(others, one)
		}
	}
	o := login.Options{
		SSH: strings.Fields(h.options.Hosts.SSH), Binary: "/proc/self/exe",
		Command: remoteCommand, Environ: h.app.environ,
		Say: func(line string) { h.app.console.Warn("%s", line) },
	}
	var here *starter.Connection
	if h.here >= 0 {
		o.Here = h.hosts[h.here].Name
		if here, err = starter.Here("/proc/self/exe", o.Command, h.app.environ); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				here.Close(ctx)
			}
		}()
	}
	var sessions []*login.Session
	if len(others) > 0 {
		if sessions, err = login.All(ctx, others, o); err != nil {
			return nil, err
		}
	}
	for i := range all {
		if all[i] = here; i != h.here {
			s := sessions[0]
			sessions = sessions[1:]
			all[i] = &starter.Connection{Stdin: s.Stdin, Stdout: s.Stdout, Wait: s.Wait, Close: s.Close}
		}
	}
	return all, nil
}

// resolveWait is how long a name may take to be resolved: if it takes longer, ssh logs in.
const resolveWait = time.Second

// hereOf finds which of the hosts is this machine, as the same user; -1 if none is.
func hereOf(list []hosts.Host) int {
	own := map[string]bool{"localhost": true}
	name, _ := os.Hostname()
	short, _, _ := strings.Cut(name, ".")
	own[name], own[short] = true, true
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if prefix, is := a.(*net.IPNet); is {
			own[prefix.IP.String()] = true
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), resolveWait)
	defer cancel()
	is := make([]bool, len(list))
	var wg sync.WaitGroup
	for i, one := range list {
		if is[i] = own[one.Name]; is[i] || one.Name == "" {
			continue
		}
		wg.Go(func() {
			found, err := net.DefaultResolver.LookupHost(ctx, one.Name)
			is[i] = err == nil && slices.ContainsFunc(found, func(a string) bool {
				return own[a] || net.ParseIP(a).IsLoopback() // Debian's 127.0.1.1
			})
		})
	}
	wg.Wait()
	for i, one := range list {
		if is[i] && (one.User == "" || one.User == userName()) {
			return i
		}
	}
	return -1
}

// userName is that of this process, "" if it is not known.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
