package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"rdzv/internal/hint"
	"rdzv/internal/shell"
	"rdzv/internal/spelling"
	"rdzv/rdzv/agent/internal/advice"
	"rdzv/rdzv/agent/internal/headstart"
	"rdzv/rdzv/agent/internal/program"
	"rdzv/wrap"
)

// findProgram finds the program's file, as seen from the workers' directory, whether it needs a
// head start, and whether its interpreter and script can start.
func (s *Setup) findProgram() (err error) {
	if len(s.Argv) == 0 { // it is optional for a check
		return nil
	}
	if s.Path, err = wrap.Find(s.Argv[0], s.Variables(), s.WorkerDir()); err != nil {
		if s.Dir != "" && !errors.Is(err, wrap.ErrCarriageReturn) {
			return hint.With(err, fmt.Sprintf("the workers' directory is %q (--chdir)", s.Dir))
		}
		return hint.With(err, cmp.Or(advice.OnProgram(err, s.Argv), pathHint(s.Argv[0])))
	}
	s.HeadStart, s.IsPython = 0, s.isPython()
	if file, err := filepath.Abs(s.Path); err == nil && program.IsScript(s.Root, file, s.Argv) {
		s.HeadStart = headstart.Limit
	}
	start, ok := errors.AsType[*program.StartError](s.Program.Err)
	if ok && start.Missing != "" {
		return hint.With(start, s.missingScript(start.Missing))
	}
	return s.Program.Err
}

// missingScript is what to do about a script that does not exist; "" if nothing is known.
func (s *Setup) missingScript(name string) string {
	relative := !filepath.IsAbs(name)
	switch near := s.similarTo(name); {
	case near != "":
		return fmt.Sprintf("did you mean %s?", shell.Line(near))
	case relative && s.OneHost:
		return "change to the directory that has it, or give its full path"
	case relative:
		return "copy it there, change to the directory that has it, or give its full path"
	}
	return ""
}

// similarTo is the file beside a missing script whose name is most similar; "" if there is none.
func (s *Setup) similarTo(script string) string {
	in, name := filepath.Split(script)
	dir := in
	if !filepath.IsAbs(in) {
		dir = filepath.Join(s.dir, in)
	}
	entries, _ := fs.ReadDir(s.Root, cmp.Or(strings.Trim(filepath.Clean(dir), "/"), "."))
	var names []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == filepath.Ext(name) {
			names = append(names, e.Name())
		}
	}
	if near := spelling.Nearest(name, names); near != "" {
		return in + near
	}
	return ""
}

// pathHint returns a suggestion if no program of this name was found in PATH, or "" if it is a path
// or cannot be the name of a program.
func pathHint(name string) string {
	if name == "" || strings.ContainsAny(name, "/ =") {
		return ""
	}
	return "is the environment that has it active on this node? Otherwise give its path"
}

// PySpy is the file of py-spy, in PATH or beside the program, as in a virtual environment; "" if
// there is none.
func (s *Setup) PySpy() string {
	beside := filepath.Join(filepath.Dir(s.Path), "py-spy")
	for _, name := range []string{"py-spy", beside} {
		if path, err := wrap.Find(name, s.Variables(), s.WorkerDir()); err == nil {
			return path
		}
	}
	return ""
}
