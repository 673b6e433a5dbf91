// Package setup finds what the workers of an agent need on this node: their directory, their
// program and what it consists of, a directory for logs.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/envmap"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/program"
)

// Wanted has the user's settings that are checked against the files of this node.
type Wanted struct {
	Argv    []string // the program and its arguments; empty for a check without one
	Environ []string
	Env     envmap.Env // Environ
	Root    fs.FS
	// Python is that of agent.Config, with which Argv begins if it is for this program.
	Python string
	// Given are those of agent.Config; "" if they are not given.
	Dir, LogDir, ExportFile string
	PythonDir               string // with a python for a program that is called so; "" is none
	PathExported            bool   // PATH is that of rank 0's agent
	Checks                  bool   // nodes are checked: this agent must not hang
	OneHost                 bool   // the job has no other node
}

// Setup is the result of Wanted.Inspect. Path and HeadStart are set by Check.
type Setup struct {
	Wanted
	Program   program.Program // what is known of it; without one, of python3 of PATH
	Path      string          // the program's file; "" if it was not found
	HeadStart time.Duration   // of rank 0, 0 for a program that needs none
	NCCL      bool            // NCCL has a configuration file
	IsPython  bool            // the program's file is python, or a python file; set by Check
	Why       string          // why Program.Python is that one, if the program is only called so

	dir   string // of the workers; "" if it was removed
	noDir error  // why it is unknown
	path  string // PATH of the workers if it is another one than that of Env; else ""
}

// CheckTime is how long each look at something may take that may not respond.
const CheckTime = 2 * time.Second

// Inspect determines what the workers' environment and directory imply. It may hang with a file
// system, unless nodes are checked.
func (w Wanted) Inspect() Setup {
	s := Setup{Wanted: w}
	if s.noDir = w.unresponsive(); s.noDir != nil {
		return s
	}
	s.NCCL = host.NCCLConfigured(w.Env)
	if s.dir, s.noDir = filepath.Abs(w.Dir); s.noDir == nil {
		s.inspectProgram()
	}
	return s
}

// Unknown is w when it is known only which files do not respond.
func (w Wanted) Unknown(text string) Setup {
	return Setup{Wanted: w, noDir: &unresponsiveError{text}}
}

// Hangs tells whether a file system does not respond.
func (s *Setup) Hangs() bool {
	_, is := errors.AsType[*unresponsiveError](s.noDir)
	return is
}

// WorkerDir is the workers' directory, "" if it is that of this process.
func (s *Setup) WorkerDir() string {
	if s.Dir == "" {
		return ""
	}
	return s.dir
}

// Check returns what keeps the workers from starting, in the order of importance. It finds the
// program's file.
func (s *Setup) Check() (problems []error) {
	noDir := s.checkDirectory()
	problems = append(problems, noDir)
	if noDir == nil || s.Dir == "" && !s.Hangs() {
		problems = append(problems, s.findProgram())
	}
	return problems
}

// checkDirectory checks whether the workers have a working directory.
func (s *Setup) checkDirectory() error {
	if s.Hangs() {
		return s.noDir
	}
	if given := s.Dir; given != "" && s.noDir == nil {
		if err := unix.Access(s.dir+"/.", unix.X_OK); err != nil {
			return fmt.Errorf("cannot change to directory %q: %w", given, err)
		}
	}
	if !errors.Is(s.noDir, fs.ErrNotExist) || !host.DirectoryRemoved() {
		return nil
	}
	name := ""
	if pwd := s.Env["PWD"]; pwd != "" {
		name = fmt.Sprintf(" %q", pwd)
	}
	return fmt.Errorf("cannot start: the working directory%s was removed", name)
}

// MakeLogDir makes the directory for logs, so that it is known before any worker starts whether
// there can be logs.
func (s *Setup) MakeLogDir() error {
	dir := s.LogDir
	if dir == "" {
		return nil
	}
	late := fmt.Errorf("the file system did not respond for %v", CheckTime)
	ctx, cancel := context.WithTimeoutCause(context.Background(), CheckTime, late)
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

// Interpreter is the python that runs the program; "" if it is not known.
func (s *Setup) Interpreter() string {
	isPython := strings.HasPrefix(filepath.Base(s.Path), "python")
	switch {
	case isPython && s.Program.Python == "": // a script that runs one, as of pyenv
		return s.Path
	case isPython, s.Program.Unknown == "":
		return s.Program.Python
	}
	return ""
}
