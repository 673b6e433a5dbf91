package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rdzv/internal/proctest"
)

const systemPython = "/usr/bin/python3"

// whichTorch prints the directory in which python finds torch, and its version.
const whichTorch = `import importlib.util, os
found = importlib.util.find_spec("torch")
if found:
    place = os.path.dirname(found.origin)
    version = {}
    exec(open(place + "/version.py").read(), version)
    print(os.path.dirname(place), version["__version__"])
`

// home is a directory with several installations of torch, each of which has a version of its own.
type home struct {
	*testing.T
	dir  string
	site string // lib/python3.11/site-packages
}

func newHome(t *testing.T) home {
	t.Helper()
	proctest.NeedProgram(t, systemPython)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := home{T: t, dir: dir}
	version := "import sys; print('python%d.%d' % sys.version_info[:2])"
	h.site = filepath.Join("lib", h.output(systemPython, "-c", version), "site-packages")
	return h
}

func (h home) output(argv ...string) string {
	h.Helper()
	c := exec.CommandContext(h.Context(), "/usr/bin/env", argv...) // looks in PATH of c.Env
	c.Dir, c.Env = h.dir, []string{"PATH=/usr/bin:/bin", "HOME=" + h.dir}
	out, err := c.CombinedOutput()
	if err != nil {
		h.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (h home) write(file, text string) {
	h.Helper()
	file = filepath.Join(h.dir, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		h.Fatal(err)
	}
}

// torch installs a torch in a directory.
func (h home) torch(dir string) {
	h.write(dir+"/torch/__init__.py", "")
	version := strings.ReplaceAll(strings.Trim(dir, "."), "/", ".")
	h.write(dir+"/torch/version.py", fmt.Sprintf("__version__ = '2.6.0+%s'\n", version))
}

// Inspect finds the torch that the python of this machine finds itself, wherever it is installed.
func TestAsPython(t *testing.T) {
	h := newHome(t)
	h.output(systemPython, "-m", "venv", "--without-pip", "venv")
	h.output(systemPython, "-m", "venv", "--without-pip", "empty")
	h.output(systemPython, "-m", "venv", "--without-pip", "--copies", "copies")
	h.output(systemPython, "-m", "venv", "--without-pip", "--system-site-packages", "system")
	h.torch("venv/" + h.site)
	h.torch("copies/" + h.site)
	h.torch("user/" + h.site)
	h.torch(".local/" + h.site)
	h.torch("listed")
	h.write("listed/namespace/torch/other.py", "") // not a package
	h.write("which.py", whichTorch)
	h.write("script", "#!"+systemPython+" -s\n"+whichTorch)
	h.write("envscript", "#!/usr/bin/env python3\n"+whichTorch)
	h.write("shell.sh", "#!/bin/sh -e\npython3 which.py\n")

	for _, c := range []string{
		"python3 which.py", "python3 -s which.py", "python3 -I which.py",
		"python3 -Wignore -X utf8 -s which.py",
		"PYTHONPATH=listed python3 which.py", "PYTHONPATH=nosuch:listed python3 which.py",
		"PYTHONPATH=listed/namespace python3 which.py", "PYTHONNOUSERSITE=1 python3 which.py",
		"/bin/python3 -s which.py", "venv/bin/python which.py", "copies/bin/python which.py",
		"PATH=HOME/venv/bin:/usr/bin:/bin python3 which.py",
		"PATH=HOME/venv/bin:/usr/bin:/bin sh shell.sh",
		"empty/bin/python which.py", "system/bin/python which.py", "system/bin/python -s which.py",
		"./script", "./envscript", "./shell.sh", "sh shell.sh",
	} {
		words := strings.Fields(strings.ReplaceAll(c, "HOME", h.dir))
		env, argv := map[string]string{"PATH": "/usr/bin:/bin", "HOME": h.dir}, words
		if name, value, sets := strings.Cut(words[0], "="); sets {
			env[name], argv = value, words[1:]
		}
		torch := Inspect(os.DirFS("/"), argv, env, h.dir).Torch
		got := strings.TrimSpace(torch.Dir + " " + torch.Version)
		want := h.output(append([]string{"env"}, words...)...)
		if got != want && (got != "" || torch.Unknown == "") {
			t.Errorf("%s: found %q, but python imports %q", c, got, want)
		}
	}
}
