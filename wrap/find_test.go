package wrap

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFind compares with what env(1), that is execvp(3), makes of the same name, PATH and directory.
func TestFind(t *testing.T) {
	nothingLeft(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		file := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(file), 0o755)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("a/prog", "#!/bin/sh\nexit 7\n", 0o755)
	write("a/sub/x", "", 0o644)
	write("b/prog", "#!/bin/sh\nexit 8\n", 0o755)
	write("c/prog", "no x bit\n", 0o644)
	write("c/noexec", "no x bit\n", 0o644)
	write("a/orphan", "#!/no/such/interpreter -x\nexit 1\n", 0o755)
	write("a/dirby", "#!"+dir+"\n", 0o755)
	write("a/noexecby", "#!"+dir+"/c/noexec\n", 0o755)
	write("a/spaces", "#! \t /bin/sh -e\nexit 9\n", 0o755)
	write("a/relative", "#!a/prog\n", 0o755)
	if err := syscall.Mkfifo(dir+"/a/fifo", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", dir+"/a/dangling"); err != nil {
		t.Fatal(err)
	}
	path := func(entries ...string) string { return "PATH=" + strings.Join(entries, ":") }
	for _, row := range []struct {
		name, env, dir string
		want           string // the file, from dir
		code           int    // of the error
		says           string
	}{
		{"prog", path(dir+"/a", dir+"/b"), "", "a/prog", 0, ""},
		{"prog", path(dir+"/b", dir+"/a"), "", "b/prog", 0, ""},
		{"prog", path("/nowhere", dir+"/c", dir+"/a"), "", "a/prog", 0, ""},
		{"prog", path("a"), dir, "a/prog", 0, ""},
		{"prog", path("", "/nowhere"), dir + "/b", "b/prog", 0, ""},
		{"./prog", path("/nowhere"), dir + "/b", "b/prog", 0, ""},
		{"b/prog", path("/nowhere"), dir, "b/prog", 0, ""},
		{"spaces", path(dir + "/a"), "", "a/spaces", 0, ""},
		{"relative", path(dir + "/a"), dir, "a/relative", 0, ""},
		{"noexec", path(dir+"/c", "/nowhere"), "", "", 126, "permission denied"},
		{"nothing", path(dir+"/a", dir+"/b"), "", "", 127, "not found in PATH"},
		{"nothing", path(dir+"/a", "/etc/passwd", "/bin"), "", "", 127, "not found in PATH"},
		{"sub", path(dir + "/a"), "", "", 127, "not found in PATH"},
		{"dangling", path(dir + "/a"), "", "", 127, "not found in PATH"},
		{"", path(dir + "/a"), "", "", 127, "no program named"},
		{dir + "/a/sub", "", "", "", 126, "is a directory"},
		{dir + "/a/", "", "", "", 126, "is a directory"},
		{dir + "/a/nothing", "", "", "", 127, "no such file"},
		{dir + "/a/prog/x", "", "", "", 126, "not a directory"},
		{dir + "/c/noexec", "", "", "", 126, "permission denied"},
		{dir + "/a/fifo", "", "", "", 126, "no regular file"},
		{dir + "/a/orphan", "", "", "", 127, `interpreter "/no/such/interpreter": no such file`},
		{dir + "/a/dirby", "", "", "", 126, "is a directory"},
		{dir + "/a/noexecby", "", "", "", 126, "permission denied"},
		{"prog", path("a"), dir + "/nowhere", "", 127, "no working directory"},
	} {
		got, err := Find(row.name, []string{"X=1", row.env, "PATH=/never"}, row.dir)
		if row.code == 0 {
			if err != nil || got != filepath.Join(dir, row.want) {
				t.Errorf("Find(%q, %q, %q) = %q, %v", row.name, row.env, row.dir, got, err)
			}
			continue
		}
		var failure *FindError
		if !errors.As(err, &failure) || failure.ExitCode() != row.code || !strings.Contains(err.Error(), row.says) {
			t.Errorf("Find(%q, %q, %q) = %q, %v, want code %d, %q", row.name, row.env, row.dir, got, err, row.code, row.says)
		}
		if code := ofEnv(row.name, row.env, row.dir); code >= 0 && code != row.code {
			t.Errorf("%q: code %d, env says %d", row.name, row.code, code)
		}
	}
}

// ofEnv is the exit code of env(1) for a program that cannot be run; -1 where env does not get that far.
func ofEnv(name, env, dir string) int {
	if _, err := os.Stat(orDot(dir)); err != nil || name == "sub" {
		return -1 // execvp(3) blames a directory in PATH, a shell goes past it: so do we
	}
	cmd := exec.Command("/usr/bin/env", name)
	cmd.Env, cmd.Dir = []string{env}, dir
	err := cmd.Run()
	var status *exec.ExitError
	if errors.As(err, &status) {
		return status.ExitCode()
	}
	return 0
}

func TestFindWithoutPath(t *testing.T) {
	if got, err := Find("sh", nil, ""); err != nil || got != "/bin/sh" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Find("sh", []string{"PATH="}, "/bin"); err != nil || got != "/bin/sh" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestFoundButNotExecutable: what only the kernel can tell comes as the worker's Result.
func TestFoundButNotExecutable(t *testing.T) {
	nothingLeft(t)
	file := filepath.Join(t.TempDir(), "x")
	for _, row := range []struct {
		text string
		code int
		err  error
	}{
		{"neither script nor binary\n", 126, syscall.ENOEXEC},
		{"#!/no/such\n", 127, syscall.ENOENT},
		{"\x7fELF", 126, syscall.ENOEXEC},
	} {
		os.Remove(file)
		if err := os.WriteFile(file, []byte(row.text), 0o755); err != nil {
			t.Fatal(err)
		}
		w := sh(t, "")
		w.Path = file
		e := mustRun(t, t.Context(), Tree{Workers: []Worker{w}})[0]
		if e.Code != row.code || !errors.Is(e.Err, row.err) || e.PID != 0 || e.Stopped {
			t.Errorf("%q: %+v", row.text, e)
		}
	}
	w := sh(t, "")
	w.Args = []string{"sh", strings.Repeat("x", 200<<10)} // one argument may have 128 KiB
	if e := mustRun(t, t.Context(), Tree{Workers: []Worker{w}})[0]; e.Code != 126 || !errors.Is(e.Err, syscall.E2BIG) {
		t.Errorf("%+v", e)
	}
}

// FuzzFirstLine: nothing that is in a file makes Find fail in another way than by FindError.
func FuzzFirstLine(f *testing.F) {
	for _, s := range []string{"#!/bin/sh\n", "#!", "#! \n", "#!\x00\n", "#!/bin/sh", "", "#!" + strings.Repeat("y", 300)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, text, 0o755); err != nil {
			t.Fatal(err)
		}
		got, err := Find(file, nil, "")
		var failure *FindError
		if err != nil && (!errors.As(err, &failure) || failure.ExitCode() != 126 && failure.ExitCode() != 127) {
			t.Fatalf("%v", err)
		}
		if err == nil && got != file {
			t.Fatalf("%q", got)
		}
	})
}
