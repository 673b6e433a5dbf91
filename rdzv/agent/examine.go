package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"rdzv/envmap"
	"rdzv/rdzv/agent/internal/exports"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/limits"
	"rdzv/rdzv/agent/internal/setup"
)

// found is what the files of the user tell about the workers of a task.
type found struct {
	setup     setup.Setup
	problems  []error // of the directory and the program
	noLogs    error
	exports   exports.Exports
	noExports error
}

// look is what to look for. It has copies, because it may go on when nobody waits for it any more.
type look struct {
	wanted  setup.Wanted
	exports func(at func(text string)) (exports.Exports, error)
}

// examine looks at the files, unless that was done. If it takes long, it reports for what it waits.
// The error is the cause of ctx's end.
func (l *Local) examine(ctx context.Context, events *reporter) error {
	if l.examined {
		return nil
	}
	all, step := l.all(), new(atomic.Pointer[string])
	at := func(text string) { step.Store(&text) }
	at("a file system does not respond")
	slow := func() { events.diagnose(Warning, errors.New("waiting: "+*step.Load())) }
	looks, sameFiles := make([]look, len(all)), make([]bool, len(all))
	for i, t := range all {
		looks[i] = look{t.wanted(), t.readExports()}
		sameFiles[i] = i > 0 && envmap.SameButForTask(t.env, l.env)
	}
	list, err := host.Await(ctx, slow, func() ([]found, error) {
		list := make([]found, len(looks))
		for i, look := range looks {
			f := &list[i]
			if sameFiles[i] {
				f.setup, f.problems, f.noLogs = list[0].setup, list[0].problems, list[0].noLogs
				f.setup.Wanted = look.wanted
			} else {
				f.setup, f.problems = look.wanted.Inspect(at)
				f.noLogs = f.setup.MakeLogDir(at)
			}
			f.exports, f.noExports = look.exports(at)
		}
		return list, nil
	})
	if err != nil {
		l.awaited = *step.Load()
		return err
	}
	for i, t := range all {
		t.know(list[i])
		t.examined = true
	}
	return nil
}

// wanted returns the settings that package setup checks on this node.
func (l *Local) wanted() setup.Wanted {
	c := l.Config
	w := setup.Wanted{
		Argv: c.Program, Environ: c.Environ, Env: l.env, Root: c.Root, Dir: c.Dir, LogDir: c.LogDir,
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

// readExports returns what determines what this agent exports, unless that was replaced.
func (l *Local) readExports() func(at func(text string)) (exports.Exports, error) {
	if known, err := l.exports, l.noExports; l.overridden {
		return func(func(string)) (exports.Exports, error) { return known, err }
	}
	c, env, mayRunRank0 := l.Config, l.env, l.layout().MayRunRank0()
	return func(at func(text string)) (exports.Exports, error) {
		at(fmt.Sprintf("the exports file %q does not respond", c.ExportFile)) // it may be a FIFO
		return exports.Read(c.Export, c.ExportFile, env, mayRunRank0)
	}
}

// know takes what was found out, and finds what keeps this agent from running its workers, as far
// as possible before the agents meet. It joins nevertheless, with its problems, so that those of
// all nodes are reported together and no other agent waits for this one.
func (l *Local) know(f found) {
	l.setup, l.exports, l.noExports = f.setup, f.exports, f.noExports
	l.rank0Problems = withProblem(nil, f.noExports)
	l.Path, l.HeadStart = f.setup.Path, f.setup.HeadStart
	errs := append(slices.Clone(f.problems), l.countWorkers())
	if l.task == nil { // another task's process opens the files of its workers
		errs = append(errs, limits.ForWorkers(l.Workers))
	}
	errs = append(errs,
		l.identities().CheckDevices(l.env, l.Config.torchOptions(l.OwnTasks)), f.noLogs)
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
