package program

import (
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// Whatever a script, pyvenv.cfg, version.py, a .pth file and a finder of editable packages contain,
// Inspect ends, and what it returns is the path of a file, a version, or nothing.
func FuzzInspect(f *testing.F) {
	f.Add("#!/usr/bin/env -S python3 -u\n", "home = /usr/bin\n", "__version__ = '2.6.0'", "/src\n",
		"")
	f.Add("#! python3 -Im x", "version_info = 3.11.4.final.0\nhome=..", `__version__: str = "2"`,
		"import __editable___torch_2_finder", "MAPPING: dict[str, str] = {'torch': '/src/torch'}")
	f.Add("#!/bin/sh\n", "include-system-site-packages = false", "", "\ufeffsrc\r\n#",
		"MAPPING = {}")
	f.Add("#!x.py", "=", "__version__ = 'a\x1b[31mb'", "\x00\n../../..", "MAPPING = {'torch': '/'}")
	installed := load(f, "editable")
	f.Fuzz(func(t *testing.T, script, config, version, pth, finder string) {
		fsys := fstest.MapFS{}
		for name, file := range installed {
			fsys[name] = file
		}
		site := "home/u/finder/lib/python3.11/site-packages/"
		for name, text := range map[string]string{
			"home/u/x.py": script, "home/u/finder/pyvenv.cfg": config,
			"src/torch/version.py":  version,
			"src/torch/__init__.py": "", site + "a.pth": pth,
			site + "__editable___torch_2_finder.py": finder, "usr/bin/env": "", "bin/sh": "",
		} {
			fsys[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o755}
		}
		env := map[string]string{"PATH": "/home/u/finder/bin:/usr/bin", "HOME": "/home/u"}
		for _, argv := range [][]string{{"./x.py"}, {"finder/bin/python", "x.py"}} {
			p := Inspect(fsys, argv, env, "/home/u")
			for _, file := range []string{p.Python, p.Torch.Dir} {
				if file != "" && (!path.IsAbs(file) || path.Clean(file) != file) {
					t.Errorf("%q: not a clean absolute path in %+v", file, p)
				}
			}
			if strings.ContainsFunc(p.Version+p.Torch.Version, unicode.IsControl) {
				t.Errorf("control characters in a version: %+v", p)
			}
			p.Torch.LacksLibuv()
		}
		words, isScript := parseShebang(script)
		if isScript && (len(words) < 1 || len(words) > 2) {
			t.Errorf("%q: an interpreter and at most one argument, got %q", script, words)
		}
	})
}

// Whatever the words of a command are, Inspect ends, and what leads to a script is a part of them.
func FuzzCommand(f *testing.F) {
	f.Add("env A=b python3 -uWignore -Xdev x.py --lr 3", "print()", "")
	f.Add("numactl -N0 bash -eo pipefail run.sh", "#!/usr/bin/env -S python3 -m x", "import x")
	f.Add("./x.py ../x.py", "#!/bin/sh", "/src\n")
	f.Add("python3 -mpkg..mod/../x", "", "x\x00")
	installed := load(f, "debian13")
	f.Fuzz(func(t *testing.T, line, script, pth string) {
		fsys := fstest.MapFS{}
		for name, file := range installed {
			fsys[name] = file
		}
		fsys["home/u/x.py"] = &fstest.MapFile{Data: []byte(script), Mode: 0o755}
		fsys["usr/bin/numactl"] = &fstest.MapFile{Mode: 0o755}
		fsys["usr/lib/python3/dist-packages/a.pth"] = &fstest.MapFile{Data: []byte(pth)}
		argv := strings.Split(line, " ")
		p := Inspect(fsys, argv, map[string]string{"PATH": "/usr/bin"}, "/home/u")
		if words := p.Script.Words; words < 0 || words > len(argv) {
			t.Errorf("%q: %d of %d words", line, words, len(argv))
		}
		if p.Script.Name == "" && p.Script.Digest != "" {
			t.Errorf("%q: a digest without a name: %+v", line, p.Script)
		}
		if p.Err != nil && strings.ContainsFunc(p.Err.Error(), unicode.IsControl) {
			t.Errorf("%q: control characters in %q", line, p.Err)
		}
	})
}
