package setup

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"rdzv/envmap"
	"rdzv/rdzv/agent/internal/program"
)

// PythonNames are the names of a program that Python and PythonDir are for.
var PythonNames = []string{"python", "python3"}

// anyPython tells whether the program, or what is assumed without one, is a python that is looked
// up in PATH.
func (w Wanted) anyPython() bool {
	return len(w.Argv) == 0 || slices.Contains(PythonNames, w.Argv[0])
}

// inspectProgram finds the program's python and libraries. The python of PythonDir counts only if
// that of PATH certainly has no torch, and nothing says that the user wants that one.
func (s *Setup) inspectProgram() {
	argv := s.Argv
	if len(argv) == 0 && s.Python != "" {
		argv = []string{s.Python}
	}
	s.Program = program.Inspect(s.Root, argv, s.Env, s.dir)
	switch {
	case s.Python != "" && argv[0] == s.Python:
		s.Why = "that of python -m rdzv"
		return
	case !s.anyPython():
		return
	}
	s.Why = "the first in PATH"
	active := s.Env["VIRTUAL_ENV"] != "" || s.Env["CONDA_PREFIX"] != ""
	torch := s.Program.Torch
	unsure := s.Program.Unknown != "" || torch.Dir != "" || torch.Unknown != ""
	if s.PythonDir == "" || s.Env["PATH"] == "" || s.PathExported || active || unsure {
		return
	}
	changed := maps.Clone(s.Env)
	changed["PATH"] = s.PythonDir + ":" + s.Env["PATH"]
	beside := program.Inspect(s.Root, s.Argv, changed, s.dir)
	if beside.Torch.Dir == "" || filepath.Dir(beside.Python) != s.PythonDir {
		return
	}
	s.Why = "beside rdzv, because PATH has none"
	if other := s.Program.Python; other != "" {
		s.Why = "beside rdzv, because " + other + " of PATH has no torch"
	}
	s.Program, s.path = beside, changed["PATH"]
}

// PathChange is the change of PATH that lets workers run the python of PythonDir; empty if they do
// not.
func (s *Setup) PathChange() []envmap.KV {
	if s.path == "" {
		return nil
	}
	return []envmap.KV{{Name: "PATH", Value: s.path}}
}

// Variables are those of the workers' environment that are known here.
func (s *Setup) Variables() []string {
	return envmap.Changes{Set: s.PathChange()}.Apply(s.Environ)
}

// ChosenPython is the python that runs the program and why it is this one; "" if the program is
// none, has a path, or is not known.
func (s *Setup) ChosenPython() (file, why string) {
	if s.Why == "" || s.Program.Python == "" {
		return "", ""
	}
	return s.Program.Python, s.Why
}

// CertainPython is the python that runs the program; "" if it is none, or may be another one.
func (s *Setup) CertainPython() string {
	if !s.Program.Certain {
		return ""
	}
	return s.Program.Python
}

// isPython tells whether the program's file is python, or a python file.
func (s *Setup) isPython() bool {
	return strings.HasSuffix(s.Argv[0], ".py") || program.IsPython(s.Root, s.Path, s.dir)
}
