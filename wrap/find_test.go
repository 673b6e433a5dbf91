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

// TestFind also compares the exit codes with those of env(1), which uses execvp(3), for the same
// name, PATH and directory.
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
		text           string // of the error
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
		{"", path(dir + "/a"), "", "", 127, "the program name is empty"},
		{dir + "/a/sub", "", "", "", 126, "is a directory"},
		{dir + "/a/", "", "", "", 126, "is a directory"},
		{dir + "/a/nothing", "", "", "", 127, "no such file"},
		{dir + "/a/prog/x", "", "", "", 126, "not a directory"},
		{dir + "/c/noexec", "", "", "", 126, "permission denied"},
		{dir + "/a/fifo", "", "", "", 126, "not a regular file"},
		{dir + "/a/orphan", "", "", "", 127, `interpreter "/no/such/interpreter": no such file`},
		{dir + "/a/dirby", "", "", "", 126, "is a directory"},
		{dir + "/a/noexecby", "", "", "", 126, "permission denied"},
		{"prog", path("a"), dir + "/nowhere", "", 127, `/nowhere": no such file`},
	} {
		got, err := Find(row.name, []string{"X=1", row.env, "PATH=/never"}, row.dir)
		if row.code == 0 {
			if err != nil || got != filepath.Join(dir, row.want) {
				t.Errorf("Find(%q, %q, %q) = %q, %v", row.name, row.env, row.dir, got, err)
			}
			continue
		}
		var failure *FindError
		if !errors.As(err, &failure) || failure.ExitCode() != row.code ||
			!strings.Contains(err.Error(), row.text) {
			t.Errorf("Find(%q, %q, %q) = %q, %v, want exit code %d and %q",
				row.name, row.env, row.dir, got, err, row.code, row.text)
		}
		if code := codeOfEnv(row.name, row.env, row.dir); code >= 0 && code != row.code {
			t.Errorf("Find(%q): exit code %d, env(1) exits with %d", row.name, row.code, code)
		}
	}
}

// codeOfEnv is the exit code of env(1) for a program that cannot be run; -1 if env cannot be
// compared.
func codeOfEnv(name, env, dir string) int {
	if _, err := os.Stat(from(dir, ".")); err != nil || name == "sub" {
		return -1 // for a directory in PATH execvp(3) fails; a shell skips it, and so does Find
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
		t.Errorf("Find without PATH = %q, %v", got, err)
	}
	if got, err := Find("sh", []string{"PATH="}, "/bin"); err != nil || got != "/bin/sh" {
		t.Errorf("Find with an empty PATH = %q, %v", got, err)
	}
}

// TestFoundButNotExecutable: what only the kernel can determine is in the Result of the worker.
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
			t.Errorf("file %q: %+v, want code %d, %v", row.text, e, row.code, row.err)
		}
	}
	w := sh(t, "")
	w.Args = []string{"sh", strings.Repeat("x", 200<<10)} // the limit is 128 KiB (execve(2))
	e := mustRun(t, t.Context(), Tree{Workers: []Worker{w}})[0]
	if e.Code != 126 || !errors.Is(e.Err, syscall.E2BIG) {
		t.Errorf("argument too long: %+v, want code 126, %v", e, syscall.E2BIG)
	}
}

// FuzzFindScript: for any contents of a file Find returns the file or a *FindError.
func FuzzFindScript(f *testing.F) {
	for _, s := range []string{
		"#!/bin/sh\n", "#!", "#! \n", "#!\x00\n", "#!/bin/sh", "", "#!" + strings.Repeat("y", 300),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, text, 0o755); err != nil {
			t.Fatal(err)
		}
		got, err := Find(file, nil, "")
		var failure *FindError
		if err != nil && (!errors.As(err, &failure) ||
			failure.ExitCode() != 126 && failure.ExitCode() != 127) {
			t.Fatalf("Find of a file with %q: %v", text, err)
		}
		if err == nil && got != file {
			t.Fatalf("Find = %q, want %q", got, file)
		}
	})
}
