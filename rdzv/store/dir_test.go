package store

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestDirectoryOfKilledStoreIsRemoved(t *testing.T) {
	parent := t.TempDir()
	running, _ := holder(t, parent)
	killed, kill := holder(t, parent)
	for _, path := range []string{running, killed} {
		if !exists(filepath.Join(path, "member")) {
			t.Fatalf("%s is not the directory of a store", path)
		}
	}
	kill()
	if !exists(killed) {
		t.Fatal("the killed store removed its directory")
	}
	s := start(t, parent)
	if exists(killed) {
		t.Error("the killed store's directory still exists")
	}
	if !exists(filepath.Join(running, "member")) {
		t.Error("the directory of a running store was removed at a start")
	}
	stop(t, s)
	if !exists(filepath.Join(running, "member")) {
		t.Error("the directory of a running store was removed by Close of another")
	}
}

func TestOnlyAbandonedDirectoriesAreRemoved(t *testing.T) {
	parent, elsewhere := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(parent, "rdzv-store-"+name) }
	mkdir := func(path string, mode os.FileMode) string {
		must(t, os.Mkdir(path, mode))
		must(t, os.Chmod(path, mode))
		return path
	}
	lock := func(dir string) { must(t, os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600)) }

	lock(elsewhere)
	link := at("link")
	must(t, os.Symlink(elsewhere, link))
	open := mkdir(at("open"), 0o755)
	lock(open)
	file := at("file")
	must(t, os.WriteFile(file, nil, 0o600))
	new := mkdir(at("new"), 0o700)
	full := mkdir(at("full"), 0o700)
	must(t, os.WriteFile(filepath.Join(full, "no lock"), nil, 0o600))
	long := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(full, long, long))

	old := mkdir(at("old"), 0o700)
	must(t, os.Chtimes(old, long, long))

	stop(t, start(t, parent))
	for _, path := range []string{link, elsewhere, open, file, new, full} {
		if !exists(path) {
			t.Errorf("%s was removed", path)
		}
	}
	if exists(old) {
		t.Error("an old empty directory still exists")
	}
}

func TestParentWithPatternCharacters(t *testing.T) {
	parent := filepath.Join(t.TempDir(), `[a-\*]?`)
	must(t, os.Mkdir(parent, 0o700))
	abandoned := filepath.Join(parent, "rdzv-store-1")
	must(t, os.Mkdir(abandoned, 0o700))
	must(t, os.WriteFile(filepath.Join(abandoned, "lock"), nil, 0o600))
	stop(t, start(t, parent))
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

// Stores of several jobs start in one directory at the same time.
func TestConcurrentDirectories(t *testing.T) {
	parent := t.TempDir()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 50 {
				d, err := newDir(parent)
				if err != nil {
					t.Error(err)
					return
				}
				if !exists(filepath.Join(d.path, "lock")) {
					t.Errorf("%s was removed while in use", d.path)
				}
				if err := d.remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
