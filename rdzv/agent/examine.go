package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv/agent/internal/exports"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/limits"
	"rdzv/rdzv/agent/internal/setup"
)

// Files of the user, such as the program or a directory in PYTHONPATH, may be in a file system that
// does not respond, because its server is down. Then the agent looks at them beside all else that
// it does until it can become a member: the user learns what it waits for, and the other agents do
// not take it for missing.

// examineTime is how long Plan waits for the files. The others may report 2 s later that no other
// agent has connected.
const examineTime = time.Second

// examined is l with what its files tell. If they do not respond in time it is l without that, and
// for a check with the problem.
func (l *Local) examined() *Local {
	done, known := make(chan *Local, 1), make(chan struct{})
	other := copied(l)
	go func() { // until the file system responds, or the process ends
		other.all().examine()
		done <- other
		close(known)
	}()
	limit := examineTime
	if l.Config.Check != nil {
		limit = 2 * setup.CheckTime // it tells by itself of what it has looked for, see package setup
	}
	select {
	case found := <-done:
		return found
	case <-time.After(limit):
	}
	l.awaited = l.wanted().Unanswered()
	if l.Config.Check != nil {
		l.setup = l.wanted().Unknown(l.awaited)
		l.findProblems()
		return l
	}
	l.waited, l.rest, l.known = limit, done, known
	return l
}

// examine finds out what files tell about the workers. Tasks whose variables lead to the same files
// are examined once.
func (all localTasks) examine() {
	for _, t := range all {
		if own := all[0]; t != own && envmap.SameButForTask(t.env, own.env) {
			t.setup = own.setup
			t.setup.Wanted = t.wanted()
		} else {
			t.inspect()
		}
		t.findProblems()
		t.rank0Problems = withProblem(nil, t.readExports())
	}
}

// wanted returns the settings that package setup checks on this node.
func (l *Local) wanted() setup.Wanted {
	c := l.Config
	w := setup.Wanted{
		Argv: c.Program, Environ: c.Environ, Env: l.env, Root: c.Root, Dir: c.Dir, LogDir: c.LogDir,
		ExportFile: c.ExportFile, Checks: c.Check != nil,
		OneHost: isOnly(l) || l.layout().OnOneHost(),
		Python:  c.Python, PythonDir: c.PythonDir, PathExported: l.exportsPath(),
	}
	if c.Python != "" && len(c.Program) > 0 && slices.Contains(setup.PythonNames, c.Program[0]) {
		w.Argv = append([]string{c.Python}, c.Program[1:]...)
	}
	return w
}

// exportsPath tells whether workers get PATH from rank 0's agent, as far as this agent knows.
func (l *Local) exportsPath() bool {
	selected, _ := exports.Read(l.Config.Export, "", l.env, true) // an error is a problem
	names := slices.Concat(exports.Names(selected.Variables), l.Exported())
	return slices.Contains(names, "PATH")
}

// inspect determines what the workers' environment and directory imply.
func (l *Local) inspect() {
	if l.setup = l.wanted().Inspect(); !l.setup.Hangs() {
		l.Devices = envmap.VisibleDevices(l.env, l.Config.Root) // exported variables may say which
	}
}

// readExports determines what this agent exports.
func (l *Local) readExports() (err error) {
	c := l.Config
	l.exports, err = exports.Read(c.Export, c.ExportFile, l.env, l.layout().MayRunRank0())
	return err
}

// reportAwaited reports which files do not respond, until stop, which waits for it.
func (l *Local) reportAwaited(events *reporter) (stop func()) {
	if l.rest == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-time.After(host.SlowAfter - l.waited):
			events.diagnose(Warning, errors.New("waiting: "+l.awaited))
		case <-l.known:
		case <-ctx.Done():
		}
	})
	return func() { cancel(); wg.Wait() }
}

// An agent that cannot run its workers joins nevertheless, with its problems, so that the problems
// of all nodes are reported together and no other agent waits for this one.

// findProblems finds such problems as far as possible before the agents meet.
func (l *Local) findProblems() {
	errs := l.setup.Check()
	l.Path, l.HeadStart = l.setup.Path, l.setup.HeadStart
	errs = append(errs, l.countWorkers())
	if l.task == nil { // another task's process opens the files of its workers
		errs = append(errs, limits.ForWorkers(l.Workers))
	}
	errs = append(errs,
		l.identities().CheckDevices(l.env, l.Config.torchOptions(l.OwnTasks)), l.setup.MakeLogDir())
	l.Problems = slices.Clone(l.Config.Problems)
	for _, err := range errs {
		l.Problems = withProblem(l.Problems, err)
	}
}

// CheckLimits checks whether this process may open as many files and use as many addresses as an
// agent itself needs. If not the error is a *[ProblemError].
func CheckLimits() error {
	if err := limits.Check(); err != nil {
		return &ProblemError{fmt.Errorf("cannot run an agent on %s: %w", host.Name(), err)}
	}
	return nil
}
