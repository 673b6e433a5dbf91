package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
)

// someFiles makes a directory with a file, a directory, a FIFO, and links to these and to nothing. It
// returns the path of a name in it.
func someFiles(t *testing.T) (in func(name string) string) {
	t.Helper()
	dir := t.TempDir()
	in = func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.WriteFile(in("file"), nil, 0o600), os.Mkdir(in("dir"), 0o700), unix.Mkfifo(in("fifo"), 0o600),
		os.Symlink("file", in("link")), os.Symlink("link", in("link2")), os.Link(in("file"), in("hard")),
		os.Symlink("nothing", in("dangling")), os.Symlink(dir, in("dir/up")),
		os.Symlink("loop", in("loop")), os.Symlink("/dev/stdout", in("stdout")),
	)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestReplaceable(t *testing.T) {
	in := someFiles(t)
	t.Chdir(in("dir"))
	for path, want := range map[string]string{
		in("file"): in("file"), in("new"): in("new"), in("link"): in("file"), in("link2"): in("file"),
		"up/../" + filepath.Base(in("")) + "/file": in("file"), "up/link": in("file"),
		in("dangling"): in("nothing"), in("dir"): "", in("fifo"): "", in("stdout"): "", in("loop"): "",
		"/dev/null": "", "/dev/stdout": "", "/dev/fd/1": "", "/proc/self/fd/1": "",
	} {
		got, err := resolve(path)
		if ok := err == nil && got.replaceable(); ok != (want != "") || ok && got.path != want {
			t.Errorf("%q names %q, replaceable: %t, %v; want %q", path, got.path, ok, err, want)
		}
	}
}

func TestSame(t *testing.T) {
	in := someFiles(t)
	t.Chdir(in(""))
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"file", "file", true}, {"file", "./file", true}, {in("file"), "dir/../file", true},
		{"file", "link", true}, {"file", "link2", true}, {"file", "hard", true},
		{"file", "dir/up/file", true}, {"new", "new", true}, {"new", in("new"), true},
		{"new", "dir/up/new", true}, {"nothing", "dangling", true}, {"none/a", "none/a", true},
		{"file", "new", false}, {"new", "other", false}, {"dir/file", "file", false},
		{"fifo", "fifo", false}, {"/dev/null", "/dev/null", false},
		{"/dev/stdout", "/dev/stdout", false},
	} {
		if Same(c.a, c.b) != c.want || Same(c.b, c.a) != c.want {
			t.Errorf("Same(%q, %q) is not %t", c.a, c.b, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	in := someFiles(t)
	for path, want := range map[string]error{
		in("file"): nil, in("new"): nil, in("link"): nil, in("dangling"): nil, in("fifo"): nil,
		"/dev/null": nil,
		in("dir"):   unix.EISDIR, in("none/file"): unix.ENOENT, in("file/file"): unix.ENOTDIR,
		in("loop"): unix.ELOOP,
	} {
		for _, replace := range []bool{false, true} {
			if err := Check(path, replace); !errors.Is(err, want) {
				t.Errorf("Check(%q, %t) = %v, want %v", path, replace, err, want)
			}
		}
	}
	if err := os.Chmod(in("file"), 0o400); err != nil {
		t.Fatal(err)
	}
	var want error = unix.EACCES
	if os.Geteuid() == 0 { // root may write to what has no permission bit
		want = nil
	}
	if err := Check(in("file"), false); !errors.Is(err, want) {
		t.Errorf("a file that must not be written, to append: %v, want %v", err, want)
	}
	if err := Check(in("file"), true); err != nil {
		t.Errorf("a file that must not be written, to replace: %v", err)
	}
}

// In a directory where everyone can create files a link or a file of another user is refused.
func TestLinkOfOtherUser(t *testing.T) {
	in := someFiles(t)
	proctest.RunAsRoot(t, "chown", "-h", "65534:65534", in("link"), in("fifo"))
	if err := os.Chmod(in(""), 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	const want = "it belongs to another user (65534)"
	for _, name := range []string{"link", "link2", "dir/up/link", "fifo"} {
		_, opened := openToAppend(in(name))
		for what, err := range map[string]error{
			"openToAppend": opened, "Check": Check(in(name), true), "writeOnce": writeOnce(in(name), "x"),
		} {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s(%q) = %v, want %q", what, name, err, want)
			}
		}
	}
	if err := os.Chmod(in(""), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Check(in("link"), true); err != nil {
		t.Errorf("in a directory of this user alone: %v", err)
	}
}
