package program

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// load reads a recorded file system: one path on a line, with "-> TARGET" if it is a symbolic link
// and "/" at its end if it is a directory, and indented lines with the content of a file.
func load(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{}
	var file *fstest.MapFile
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if content, ok := strings.CutPrefix(line, "    "); ok {
			file.Data = append(file.Data, content+"\n"...)
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, target, isLink := strings.Cut(line, " -> ")
		file = &fstest.MapFile{Mode: 0o755}
		if strings.HasSuffix(name, "/") {
			file.Mode |= os.ModeDir
		}
		name = strings.Trim(name, "/")
		if isLink {
			file.Mode, file.Data = os.ModeSymlink|0o777, []byte(relative(name, target))
		}
		fsys[name] = file
	}
	return fsys
}

// relative is the target of a link in an fstest.MapFS, which cannot follow absolute ones.
func relative(link, target string) string {
	if !path.IsAbs(target) {
		return target
	}
	return strings.Repeat("../", strings.Count(link, "/")) + target[1:]
}

func TestInspect(t *testing.T) {
	const (
		wheel  = "/home/u/venv/lib/python3.11/site-packages 2.6.0+cu124"
		debian = "/usr/lib/python3/dist-packages 1.13.0a0"
		trixie = "/usr/lib/python3/dist-packages 2.6.0+debian no libuv"
		conda  = "/opt/conda/lib/python3.12/site-packages 2.5.1"
	)
	for _, c := range []struct {
		installation string
		command      string
		python       string // file and version; "" if unknown
		torch        string // directory, version, whether it lacks libuv; "" if unknown
	}{
		{"debian12", "python3 main.py", "/usr/bin/python3 3.11", debian},
		{"debian12", "torchrun main.py", "/usr/bin/python3.11 3.11", debian},
		{"debian13", "python3 main.py", "/usr/bin/python3 3.13", trixie},
		{"debian13", "/bin/python3 -u main.py", "/bin/python3 3.13", trixie},
		{"debian13", "bash run.sh", "/usr/bin/python3 3.13", trixie},
		{"debian13", "env OMP_NUM_THREADS=1 python3 main.py", "/usr/bin/python3 3.13", trixie},
		{"debian13", "env -u LC_ALL python3 main.py", "/usr/bin/python3 3.13", trixie},
		{"debian13", "", "/usr/bin/python3 3.13", trixie},
		{"debian13", "sh -c true python", "/usr/bin/python3 3.13", trixie},
		{"debian13", "nice -n 5 python3 main.py", "/usr/bin/python3 3.13", trixie},
		{"debian13", "nice -n 5 a.out", "", ""},
		{"debian13", "nosuch", "", ""},
		{"debian13", "/usr/lib", "", ""},
		{"venv", "/home/u/venv/bin/python main.py", "/home/u/venv/bin/python 3.11", wheel},
		{"venv", "/home/u/venv/bin/python3.11 main.py", "/home/u/venv/bin/python3.11 3.11", wheel},
		{"venv", "/home/u/sys/bin/python3 main.py", "/home/u/sys/bin/python3 3.11", debian},
		{"conda", "/opt/conda/bin/python main.py", "/opt/conda/bin/python 3.12", conda},
		{
			"conda", "/opt/conda/envs/pip/bin/python main.py",
			"/opt/conda/envs/pip/bin/python 3.12",
			"/opt/conda/envs/pip/lib/python3.12/site-packages 2.5.1",
		},
		{"pyenv", "/home/u/.pyenv/shims/python3 main.py", "", ""},
		{
			"fedora", "python3 main.py", "/usr/bin/python3 3.12",
			"/usr/local/lib64/python3.12/site-packages 2.6.0+rocm6.2",
		},
		{"editable", "/home/u/develop/bin/python x.py", "/home/u/develop/bin/python 3.11", ""},
		{"editable", "/home/u/finder/bin/python x.py", "/home/u/finder/bin/python 3.11", ""},
	} {
		env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/u"}
		p := Inspect(load(t, c.installation), strings.Fields(c.command), env, "/home/u")
		if got := strings.TrimSpace(p.Python + " " + p.Version); got != c.python {
			t.Errorf("%s, %q: python %q, want %q", c.installation, c.command, got, c.python)
		}
		torch := strings.TrimSpace(p.Torch.Dir + " " + p.Torch.Version)
		if p.Torch.LacksLibuv() {
			torch += " no libuv"
		}
		if torch != c.torch {
			t.Errorf("%s, %q: torch %q, want %q", c.installation, c.command, torch, c.torch)
		}
	}
}

func TestLacksLibuv(t *testing.T) {
	for version, want := range map[string]bool{
		"": false, "1.13.0a0+debian": false, "2.3.1+debian": false, "2.4.0+debian": true,
		"2.6.0+debian": true, "2.10.0+debian": true, "3.0+debian": true, "+debian": false,
		"2.6.0": false, "2.6.0a0+git1234567": false, "2.6.0+cu124": false,
		"2.7.0.dev20250210+cu126": false, "99999999999999999999.5+debian": false,
	} {
		if got := (Torch{Version: version}).LacksLibuv(); got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}

func BenchmarkInspect(b *testing.B) {
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME")}
	for b.Loop() {
		Inspect(os.DirFS("/"), []string{"/usr/bin/python3", "main.py"}, env, "/tmp")
	}
}

// Why the python of a command, or its torch, is not known is told.
func TestUnknown(t *testing.T) {
	fsys := load(t, "debian13")
	add := func(file, text string) {
		fsys[file] = &fstest.MapFile{Data: []byte(text), Mode: 0o755}
	}
	add("opt/python3", "#!/bin/sh\nexec python3.9 \"$@\"\n")
	for _, name := range []string{"podman", "nice", "true", "sh", "env"} {
		add("usr/bin/"+name, "\x7fELF")
	}
	for command, want := range map[string]string{
		"/opt/python3 main.py":          "/opt/python3 is a script that chooses the python",
		"sh -c x":                       "a shell script can run any python",
		"nice sh -c /opt/python3":       "nice can run any python",
		"podman run image python3 a":    "podman can run any python",
		"nice -n 5 python3 main.py":     "nice can run any python",
		"env PATH=/nosuch python3 x.py": "env can run any python",
		"env -C / python3 x.py":         "env can run any python",
		"env A=b python3 x.py":          "",
		"true":                          "",
		"/usr/bin/python3 main.py":      "",
		"/nonexistent/python3 main.py":  "",
	} {
		env := map[string]string{"PATH": "/usr/bin:/bin"}
		p := Inspect(fsys, strings.Fields(command), env, "/")
		if p.Unknown != want || p.Certain != (want == "" && strings.HasSuffix(command, ".py") &&
			p.Python != "") {
			t.Errorf("%s: %+v, want that it is unknown because of %q", command, p, want)
		}
	}
}

// That there is no torch is known only if nothing else can make one importable.
func TestNoTorch(t *testing.T) {
	const site = "usr/lib/python3/dist-packages/"
	for name, c := range map[string]struct {
		command, variable string
		file, text        string
		unknown           string // the end of why
	}{
		"nothing":      {"python3 x.py", "", "", "", ""},
		"code":         {"python3 x.py", "", site + "a.pth", "# x\nimport os; x\n\n", ""},
		"path":         {"python3 x.py", "", site + "a.pth", "/src/pytorch\n", "a.pth may add one"},
		"editable":     {"python3 x.py", "", site + "a.pth", "import __editable___torch_2", "a.pth may add one"},
		"isolated":     {"python3 -I x.py", "", "", "", "options of python change where it searches"},
		"another home": {"python3 x.py", "PYTHONHOME", "", "", "variables of python change where it searches"},
	} {
		fsys := load(t, "debian13")
		delete(fsys, site+"torch/__init__.py")
		if c.file != "" {
			fsys[c.file] = &fstest.MapFile{Data: []byte(c.text)}
		}
		env := map[string]string{"PATH": "/usr/bin", c.variable: "/opt"}
		p := Inspect(fsys, strings.Fields(c.command), env, "/")
		if p.Torch.Dir != "" || (p.Torch.Unknown == "") != (c.unknown == "") ||
			!strings.HasSuffix(p.Torch.Unknown, c.unknown) {
			t.Errorf("%s: %+v, want %q", name, p.Torch, c.unknown)
		}
	}
}

// What people call a program.
func TestName(t *testing.T) {
	for words, want := range map[string]string{
		"python3 -u dir/train.py --lr 1":       "train",
		"/usr/bin/python3.11 -m torch.bench x": "torch.bench",
		"python3 -mbench x":                    "bench",
		"numactl -l python3 train.py":          "train",
		"./train.py":                           "train",
		"bash run.sh -x":                       "run.sh",
		"bash -x run.sh":                       "bash",
		"sh -c true":                           "sh",
		"python3 -c pass":                      "python3",
		"/opt/solver -n 4":                     "solver",
		"":                                     "",
	} {
		if got := Name(strings.Fields(words)); got != want {
			t.Errorf("%q is called %q, want %q", words, got, want)
		}
	}
}
