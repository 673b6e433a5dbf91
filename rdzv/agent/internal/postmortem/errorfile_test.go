package postmortem

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestErrorFileIsRead(t *testing.T) {
	path, err := NameErrorFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) || !filepath.IsAbs(path) {
		t.Errorf("path %q: %v; want an absolute path at which no file exists", path, err)
	}
	for name, c := range map[string]struct {
		create func() error
		want   string
	}{
		"nothing":   {func() error { return nil }, ""},
		"message":   {func() error { return os.WriteFile(path, []byte(`{"message": "lost"}`), 0o600) }, "lost"},
		"link":      {func() error { return os.Symlink("/dev/zero", path) }, ""},
		"directory": {func() error { return os.Mkdir(path, 0o700) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.create(); err != nil {
				t.Fatal(err)
			}
			if got, _ := readErrorFile(path); got != c.want {
				t.Errorf("message %q, want %q", got, c.want)
			}
			os.Remove(path)
		})
	}
}

func TestRemoveOldFiles(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	for path, age := range map[string]time.Duration{
		filepath.Join(dir, errorFilePrefix+"1"): errorFileAge,
		filepath.Join(dir, errorFilePrefix+"2"): 0,
		filepath.Join(dir, "rdzv-host-1"):       2 * errorFileAge,
	} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := now.Add(-age - time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	RemoveOldFiles(dir, now)
	var left []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{errorFilePrefix + "2", "rdzv-host-1"}
	if !slices.Equal(left, want) {
		t.Errorf("the directory contains %q, want %q", left, want)
	}
}

func TestWithoutRecording(t *testing.T) {
	const (
		user = "Traceback (most recent call last):\n  File \"a.py\", line 1, in main\n" +
			"KeyError: 'x'"
		during    = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
		recording = "Traceback (most recent call last):\n  File \"error_handler.py\", line 81, " +
			"in record_exception\n" +
			"    with open(file, \"w\") as fp:\nPermissionError: [Errno 13] Permission denied: " +
			"'/tmp/rdzv-0/rdzv-error-1'"
	)
	for name, c := range map[string]struct{ text, want string }{
		"user's exception": {user, user},
		"recorded":         {user + during + recording, user},
		"user's own chain": {user + during + user, user + during + user},
		"chain, recorded":  {user + during + user + during + recording, user + during + user},
		"nothing else left": {"During handling of the above exception, another exception " +
			"occurred:\n" + recording, ""},
		"recording by itself": {recording, recording},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(withoutRecording(strings.Split(c.text, "\n")),
				"\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
