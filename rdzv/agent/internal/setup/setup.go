// Package setup finds what the workers of an agent need on this node: their directory, their
// program and what it consists of, a directory for logs.
package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/envmap"
	"rdzv/internal/hint"
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
	Dir, LogDir  string
	PythonDir    string // with a python for a program that is called so; "" is none
	PathExported bool   // PATH is that of rank 0's agent
	OneHost      bool   // the job has no other node
}

// Setup is the result of Wanted.Inspect.
type Setup struct {
	Wanted
	Program   program.Program // what is known of it; without one, of python3 of PATH
	Path      string          // the program's file; "" if it was not found
	HeadStart time.Duration   // of rank 0, 0 for a program that needs none
	NCCL      bool            // NCCL has a configuration file
	IsPython  bool            // the program's file is python, or a python file
	Why       string          // why Program.Python is that one, if the program is only called so

	dir   string // of the workers; "" if it was removed
	noDir error  // why it is unknown
	path  string // PATH of the workers if it is another one than that of Env; else ""
}

// Inspect determines what the workers' environment and directory imply, and what keeps the workers
// from starting, in the order of importance. It may hang with a file system: before each step it
// calls at with a sentence that is true if this step takes long.
func (w Wanted) Inspect(at func(text string)) (s Setup, problems []error) {
	s = Setup{Wanted: w}
	at("the file system of the home directory does not respond")
	s.NCCL = host.NCCLConfigured(w.Env)
	at("the file system of the working directory does not respond")
	if w.Dir != "" {
		at(fmt.Sprintf("the file system of directory %q does not respond", w.Dir))
	}
	s.dir, s.noDir = filepath.Abs(w.Dir)
	err := s.checkDirectory()
	problems = append(problems, err)
	at("the file system of " + w.named() + " does not respond")
	if s.noDir == nil {
		s.inspectProgram()
	}
	if err == nil || s.Dir == "" {
		problems = append(problems, s.findProgram())
	}
	return s, problems
}

// named is the program in messages.
func (w Wanted) named() string {
	if len(w.Argv) == 0 {
		return "python3 in PATH, or of its libraries,"
	}
	isScript := func(word string) bool { return strings.HasSuffix(word, ".py") }
	words := w.Argv[:1]
	if i := slices.IndexFunc(w.Argv[1:], isScript); i >= 0 {
		words = []string{w.Argv[0], w.Argv[i+1]}
	}
	return fmt.Sprintf("the program %q, or of what it needs,", strings.Join(words, " "))
}

// WorkerDir is the workers' directory, "" if it is that of this process.
func (s *Setup) WorkerDir() string {
	if s.Dir == "" {
		return ""
	}
	return s.dir
}

// checkDirectory checks whether the workers have a working directory.
func (s *Setup) checkDirectory() error {
	if given := s.Dir; given != "" && s.noDir == nil {
		if err := unix.Access(s.dir+"/.", unix.X_OK); err != nil {
			return hint.With(fmt.Errorf("cannot change to directory %q: %w", given, err),
				"does this node have it? --chdir DIR names another one")
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
// there can be logs. It calls at as Inspect does.
func (s *Setup) MakeLogDir(at func(text string)) error {
	dir := s.LogDir
	if dir == "" {
		return nil
	}
	at(fmt.Sprintf("the file system of the log directory %q does not respond", dir))
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		err = unix.Access(dir, unix.W_OK|unix.X_OK)
	}
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
