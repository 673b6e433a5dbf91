package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/plural"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/program"
	"rdzv/wrap"
)

// An agent that cannot run its workers joins nevertheless, with its problems, so that the problems
// of all nodes are reported together and no other agent waits for this one.

// findProblems finds such problems as far as possible before the agents meet.
func (l *Local) findProblems() {
	l.Problems = slices.Clone(l.Config.Problems)
	noDir := l.checkDirectory()
	l.Problems = withProblem(l.Problems, noDir)
	_, hung := errors.AsType[*unresponsiveError](noDir)
	if noDir == nil || l.Config.Dir == "" && !hung {
		l.Problems = withProblem(l.Problems, l.findProgram())
	}
	for _, err := range []error{l.countWorkers(), l.enoughFiles(), l.tryDevices(), l.makeLogDir()} {
		l.Problems = withProblem(l.Problems, err)
	}
}

// checkDirectory checks whether the workers have a working directory.
func (l *Local) checkDirectory() error {
	if hung, is := errors.AsType[*unresponsiveError](l.noDir); is {
		return hung
	}
	if given := l.Config.Dir; given != "" && l.noDir == nil {
		if err := unix.Access(l.dir+"/.", unix.X_OK); err != nil {
			return fmt.Errorf("cannot change to directory %q: %w", given, err)
		}
	}
	if !errors.Is(l.noDir, fs.ErrNotExist) || !host.DirectoryRemoved() {
		return nil
	}
	name := ""
	if pwd := l.env["PWD"]; pwd != "" {
		name = fmt.Sprintf(" %q", pwd)
	}
	return fmt.Errorf("cannot start: the working directory%s was removed", name)
}

// makeLogDir makes the directory for logs, so that it is known before any worker starts whether
// there can be logs.
func (l *Local) makeLogDir() error {
	dir := l.Config.LogDir
	if dir == "" {
		return nil
	}
	late := fmt.Errorf("the file system did not respond for %v", checkTime)
	ctx, cancel := context.WithTimeoutCause(context.Background(), checkTime, late)
	defer cancel()
	_, err := host.Await(ctx, func() {}, func() (struct{}, error) {
		err := os.MkdirAll(dir, 0o777)
		if err == nil {
			err = unix.Access(dir, unix.W_OK|unix.X_OK)
		}
		return struct{}{}, err
	})
	if path, is := errors.AsType[*fs.PathError](err); is {
		err = path.Err
	}
	if err != nil {
		return fmt.Errorf("cannot write to log directory %q: %w", dir, err)
	}
	return nil
}

// findProgram finds the program's file, as seen from the workers' directory, whether it needs a
// head start, and whether its interpreter and script can start.
func (l *Local) findProgram() (err error) {
	c := l.Config
	if len(c.Program) == 0 { // it is optional for a check
		return nil
	}
	if l.Path, err = wrap.Find(c.Program[0], c.Environ, l.workerDir()); err != nil {
		if c.Dir != "" {
			return hint.With(err, fmt.Sprintf("the workers' directory is %q (Config.Dir)", c.Dir))
		}
		return hint.With(err, cmp.Or(programHint(err, c.Program, c.Environ), pathHint(c.Program[0])))
	}
	l.HeadStart = 0
	if file, err := filepath.Abs(l.Path); err == nil && program.IsScript(c.Root, file, c.Program) {
		l.HeadStart = c.HeadStart
	}
	start, ok := errors.AsType[*program.StartError](l.program.Err)
	if !ok || start.Setting != "" && slices.ContainsFunc(c.Set, func(entry string) bool {
		return strings.HasPrefix(entry, start.Setting+"=") // it may be different for the workers
	}) {
		return nil
	}
	if start.Script != "" && !filepath.IsAbs(start.Script) {
		return hint.With(start,
			"copy it there, change to the directory that has it, or give its full path")
	}
	return start
}

// pathHint is what to try if no program of this name was found in PATH, "" if it is a path.
func pathHint(name string) string {
	if name == "" || strings.ContainsAny(name, "/ =") {
		return ""
	}
	return "is the environment that has it active on this node? Otherwise give its path"
}

// pySpy is the file of py-spy, in PATH or beside the program, as in a virtual environment; "" if
// there is none.
func (l *Local) pySpy() string {
	beside := filepath.Join(filepath.Dir(l.Path), "py-spy")
	for _, name := range []string{"py-spy", beside} {
		if path, err := wrap.Find(name, l.Config.Environ, l.workerDir()); err == nil {
			return path
		}
	}
	return ""
}

// workerDir is the workers' directory, "" if it is that of this process.
func (l *Local) workerDir() string {
	if l.Config.Dir == "" {
		return ""
	}
	return l.dir
}

// withProblem appends err, unless it is nil.
func withProblem(problems []rdzv.Problem, err error) []rdzv.Problem {
	if err == nil {
		return problems
	}
	p := rdzv.Problem{Kind: rdzv.OtherProblem, Text: err.Error(), Hint: Hint(err)}
	find, isFind := errors.AsType[*wrap.FindError](err)
	start, isStart := errors.AsType[*program.StartError](err)
	switch {
	case isFind && find.ExitCode() == CodeMissing, isStart && start.Missing:
		p.Kind = rdzv.ProgramMissing
	case isFind, isStart:
		p.Kind = rdzv.ProgramNotExecutable
	}
	return append(problems, p)
}

// ProblemError is a problem that prevents this agent even from joining: it would have to host the
// store, and cannot.
type ProblemError struct{ Err error }

func (e *ProblemError) Error() string { return e.Err.Error() }
func (e *ProblemError) Unwrap() error { return e.Err }

// How many files an agent may have to open, with some reserve: itself, while it hosts the store and
// runs no worker, for each of its workers, and for each other agent that connects to its store.
const (
	ownFiles    = 64
	hostFiles   = 40
	workerFiles = 6
	memberFiles = 1
)

// ownAddresses are the addresses that an agent with a store reserves, most of which it does not
// use: 1.2 GB in the Go runtime, and the database.
const ownAddresses = 2 << 30

// CheckLimits checks whether this process may open as many files and use as many addresses as an
// agent itself needs.
func CheckLimits() error {
	if err := host.CheckFiles("", ownFiles); err != nil {
		return err
	}
	return host.CheckAddressSpace(ownAddresses)
}

// enoughFiles checks whether this agent may open as many files as its workers need.
func (l *Local) enoughFiles() error {
	return host.CheckFiles("start "+plural.Of(l.Workers, "worker"), ownFiles+workerFiles*l.Workers)
}

// enoughFilesToHost checks whether all other agents can be connected to a store in this process
// while no worker runs.
func (l *Local) enoughFilesToHost() error {
	return host.CheckFiles("host the store for "+plural.Of(l.Agents, "agent"),
		hostFiles+memberFiles*(l.Agents-1))
}

// enoughFilesForAll checks the same while the workers run. It is nil if there are not enough files
// for the workers alone, which enoughFiles reports.
func (l *Local) enoughFilesForAll() error {
	if l.enoughFiles() != nil {
		return nil
	}
	do := fmt.Sprintf("host the store for %s and start %s", plural.Of(l.Agents, "agent"),
		plural.Of(l.Workers, "worker"))
	return host.CheckFiles(do, ownFiles+workerFiles*l.Workers+memberFiles*(l.Agents-1))
}

// tryDevices checks whether workers can be given the devices of this node.
func (l *Local) tryDevices() error {
	alone := envmap.Identity{WorldSize: 1, LocalWorldSize: 1, Nodes: 1, Visible: l.Devices}
	_, err := envmap.TorchChanges(l.env, alone, l.torchOptions())
	return err
}
