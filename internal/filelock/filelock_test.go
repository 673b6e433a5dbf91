package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func open(t *testing.T, path string) File {
	t.Helper()
	f, err := Open(path, os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	a, b := open(t, path), open(t, path)
	for i, step := range []struct {
		try  func() error
		free bool
	}{
		{a.TryLock, true}, {b.TryLock, false}, {a.Close, true}, {b.TryLock, true},
	} {
		err := step.try()
		if (err == nil) != step.free || err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
			t.Errorf("step %d: error %v, want success %t", i, err, step.free)
		}
	}
}

// A lock that another one has is not waited for.
func TestLockIsNotAwaited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	a, b := open(t, path), open(t, path)
	if err := a.TryLock(); err != nil {
		t.Fatal(err)
	}
	tried := make(chan error, 1)
	go func() { tried <- b.TryLock() }()
	select {
	case err := <-tried:
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			t.Errorf("%v, want EWOULDBLOCK", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("TryLock waits")
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		<-tried
	}
}

func TestNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f := open(t, path)
	if !f.Named() {
		t.Error("Named() = false for a new file")
	}
	os.Remove(path)
	if f.Named() {
		t.Error("Named() = true for a removed file")
	}
	if open(t, path); f.Named() {
		t.Error("Named() = true for a removed file whose name another file has")
	}
}

func TestOpenDoesNotFollowLinks(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "file"), link); err != nil {
		t.Fatal(err)
	}
	if f, err := Open(link, os.O_CREATE); err == nil {
		f.Close()
		t.Error("Open follows a symbolic link")
	}
	if _, err := os.Stat(filepath.Join(dir, "file")); err == nil {
		t.Error("Open created the target of the link")
	}
}
