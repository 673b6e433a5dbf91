package program

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// secured is a file system in which some files cannot be read.
type secured struct {
	fstest.MapFS
	unreadable map[string]bool
}

func (s secured) Open(name string) (fs.File, error) {
	if s.unreadable[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return s.MapFS.Open(name)
}

// userFiles is Debian 13 with files of a user in /home/u and /data.
func userFiles(t *testing.T) secured {
	fsys := load(t, "debian13")
	add := func(text string, names ...string) {
		for _, name := range names {
			fsys[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o755}
		}
	}
	add("print()", "home/u/x.py", "home/u/dir/__main__.py", "home/u/secret.py", "data/x.py",
		"home/u/pkg/mod.py", "home/u/pkg/sub/__main__.py", "opt/tools/tool.sh")
	add("PK\x03\x04", "home/u/app.zip")
	add("#!/usr/bin/env python3\n", "home/u/main.py", "usr/bin/installed", "home/u/hidden.py")
	add("#!/usr/bin/env python9\n", "home/u/old.py")
	add("#!/usr/bin/env -S python3 -u\n", "home/u/split.py")
	add("#!/bin/sh -e\n", "home/u/run.sh")
	add("\x7fELF", "usr/bin/nice", "usr/bin/numactl", "usr/bin/apptainer", "usr/bin/bash", "bin/sh",
		"usr/bin/env", "usr/bin/timeout", "usr/bin/setsid")
	fsys["home/u/link"] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte("../../data")}
	fsys["home/u/away"] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte("gone.py")}
	return secured{fsys, map[string]bool{"home/u/secret.py": true}}
}

const missing = ` is missing in "/home/u"`

func TestScript(t *testing.T) {
	fsys := userFiles(t)
	for _, c := range []struct {
		command string
		script  string // name, and "?" without a digest
		words   int
		err     string // after "cannot start: "
	}{
		{"python3 x.py", "x.py", 2, ""},
		{"python3 -u -W ignore -Xdev x.py --lr 3", "x.py", 6, ""},
		{"python3 /data/x.py", "/data/x.py", 2, ""},
		{"python3 ../u/x.py 1", "../u/x.py", 2, ""},
		{"python3 link/x.py", "link/x.py", 2, ""},
		{"python3 link/../u.py", "link/../u.py?", 2, `script "link/../u.py"` + missing},
		{"python3 link/../home/u/x.py", "link/../home/u/x.py", 2, ""},
		{"python3 dir", "dir", 2, ""},
		{"python3 app.zip", "app.zip", 2, ""},
		{"python3 nosuch.py 1", "nosuch.py?", 2, `script "nosuch.py"` + missing},
		{"python3 away", "away?", 2, `script "away"` + missing},
		{"python3 /data/no.py", "/data/no.py?", 2, `script "/data/no.py" is missing`},
		{
			"python3 secret.py", "secret.py?", 2,
			`script "secret.py" in "/home/u" cannot be read: permission denied`,
		},
		{"python3 /dev/fd/63", "/dev/fd/63?", 2, ""},
		{"python3 -c 1 nosuch.py", "", 3, ""},
		{"python3 -cprint() nosuch.py", "", 2, ""},
		{"python3 - nosuch.py", "", 2, ""},
		{"python3", "", 1, ""},
		{"python3 -i", "", 2, ""},

		{"python3 -m pkg.mod a", "", 3, ""},
		{"python3 -mpkg.mod a", "", 2, ""},
		{"python3 -m", "", 2, ""},

		{"env A=b python3 x.py", "x.py", 4, ""},
		{"env A=b python3 nosuch.py", "nosuch.py?", 4, `script "nosuch.py"` + missing},
		{"env PATH=/nosuch python3 nosuch.py", "", 0, ""},
		{"env -C /data python3 nosuch.py", "", 0, ""},
		{"env /opt/python3 nosuch.py", "", 0, ""},

		{"./main.py --lr 3", "./main.py", 1, ""},
		{"./split.py", "./split.py", 1, ""},
		{"installed --lr 3", "", 1, ""},
		{"./old.py", "./old.py", 1, ""}, // its interpreter is missing
		{"./run.sh nosuch.py", "./run.sh", 1, ""},
		{"env ./main.py 1", "", 0, ""},

		{"bash run.sh nosuch.py", "run.sh", 2, ""},
		{"bash -x run.sh", "", 0, ""},
		{"bash +x run.sh", "", 0, ""},
		{"bash nosuch.sh", "", 0, ""}, // bash looks for it in PATH
		{"sh ./nosuch.sh", "./nosuch.sh?", 2, `script "./nosuch.sh"` + missing},
		{"bash -c nosuch.py", "", 0, ""},
		{"bash", "", 0, ""},

		{"nice -n 5 python3 nosuch.py", "", 0, ""},
		{"setsid ./a.out python3 nosuch.py", "", 0, ""},
		{"apptainer exec i.sif python3 nosuch.py", "", 0, ""},
		{"numactl -N0 apptainer exec i.sif python3 nosuch.py", "", 0, ""},
	} {
		env := map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/home/u"}
		p := Inspect(fsys, strings.Fields(c.command), env, "/home/u")
		script := p.Script.Name
		if script != "" && p.Script.Digest == "" {
			script += "?"
		}
		if script != c.script || p.Script.Words != c.words {
			t.Errorf("%q: script %q, %d words, want %q, %d", c.command, script, p.Script.Words,
				c.script, c.words)
		}
		err := ""
		if p.Err != nil {
			err = strings.TrimPrefix(p.Err.Error(), "cannot start: ")
		}
		if err != c.err {
			t.Errorf("%q: error %q, want %q", c.command, err, c.err)
		}
	}
}

// pyenv's python runs the script that its arguments name, whichever python that is.
func TestPyenv(t *testing.T) {
	env := map[string]string{"PATH": "/usr/bin"}
	argv := []string{"/home/u/.pyenv/shims/python3", "-u", "nothing.py", "1"}
	p := Inspect(load(t, "pyenv"), argv, env, "/home/u")
	if p.Err == nil || p.Script.Name != "nothing.py" || p.Script.Words != 3 || p.Certain {
		t.Errorf("%+v, want a missing script", p)
	}
}

// Without PATH, the C library has one of its own.
func TestNoPath(t *testing.T) {
	p := Inspect(userFiles(t), []string{"./old.py"}, nil, "/home/u")
	if p.Err != nil {
		t.Error(p.Err)
	}
}

func TestIsScript(t *testing.T) {
	fsys := fstest.MapFS{
		"opt/tool":  {Data: []byte("#!/usr/bin/env python3\nimport torch\n")},
		"opt/a.out": {Data: []byte("\x7fELF\x02")},
		"opt/empty": {},
	}
	for _, row := range []struct {
		file, command string
		want          bool
	}{
		{"/usr/bin/python3", "python3 main.py", true},
		{"/usr/bin/python3.13t", "python3.13t -m train", true},
		{"/opt/conda/bin/python", "/opt/conda/bin/python -c 1", true},
		{"/usr/bin/dash", "/bin/sh -c ./a.out", true},
		{"/usr/bin/bash", "bash run.sh", true},
		{"/opt/tool", "tool --epochs 3", true},
		{"/usr/bin/numactl", "numactl -N0 python3 main.py", true},
		{"/usr/bin/uv", "uv run main.py", true},
		{"/opt/a.out", "./a.out --crash shell python.cfg", false},
		{"/opt/empty", "empty", false},
		{"/opt/missing", "missing", false},
		{"../tool", "../tool", false},
	} {
		if got := IsScript(fsys, row.file, strings.Fields(row.command)); got != row.want {
			t.Errorf("IsScript(%q, %q) = %v, want %v", row.file, row.command, got, row.want)
		}
	}
}

// The content of a script is told apart by its digest, a large one by its size.
func TestDigest(t *testing.T) {
	text := strings.Repeat("x", maxDigest)
	fsys := fstest.MapFS{
		"a": {Data: []byte("hello\n")}, "b": {Data: []byte(text)}, "c": {Data: []byte(text + "y")},
		"d": {Mode: fs.ModeNamedPipe},
	}
	for name, want := range map[string]string{
		"a": "crc32:363a3020", "b": "crc32:153b9c32", "c": "1048577 bytes", "d": "", "nosuch": "",
	} {
		if got := (files{fsys, "/"}).digest(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
