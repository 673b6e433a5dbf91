package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"rdzv/internal/filelock"
)

// A dir is the private directory of one store. Its owner holds a lock on the file "lock" in it
// until it ends. The next store of this user removes directories that are not locked: their owners
// were killed.
type dir struct {
	path string
	lock filelock.File
}

const dirPattern = "rdzv-store-*"

func newDir(parent string) (*dir, error) {
	removeAbandoned(parent)
	for {
		path, err := os.MkdirTemp(parent, dirPattern)
		if err != nil {
			return nil, fmt.Errorf("cannot create the store's directory in %q: %w", parent, err)
		}
		lock, err := lockDir(path, os.O_CREATE)
		if err == nil && lock.Named() {
			return &dir{path: path, lock: lock}, nil
		}
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) {
			os.RemoveAll(path)
			return nil, fmt.Errorf("cannot lock the store's directory %q: %w", path, err)
		}
		// Another store that is starting took the directory for abandoned, after the file was
		// created and before it was locked.
		if err == nil {
			lock.Close()
		}
	}
}

func (d *dir) remove() error {
	defer d.lock.Close()
	if err := os.RemoveAll(d.path); err != nil {
		return fmt.Errorf("cannot remove the store's directory: %w", err)
	}
	return nil
}

// lockDir takes the lock of the directory; it fails if another process holds it.
func lockDir(path string, flags int) (filelock.File, error) {
	f, err := filelock.Open(filepath.Join(path, "lock"), flags)
	if err != nil {
		return f, err
	}
	if err = f.TryLock(); err != nil {
		f.Close()
	}
	return f, err
}

// unlockedAge is the age at which a directory without a lock file counts as abandoned: its owner
// creates the file right after the directory.
const unlockedAge = time.Minute

// removeAbandoned removes the directories that killed stores of this user have left in parent. It
// ignores links and what other users can access: in /tmp every user can create such names.
func removeAbandoned(parent string) {
	// Glob returns no error: the pattern is valid.
	names, _ := fs.Glob(os.DirFS(parent), dirPattern)
	for _, name := range names {
		path := filepath.Join(parent, name)
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != fs.ModeDir|0o700 ||
			int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
			continue
		}
		lock, err := lockDir(path, 0)
		switch {
		case err == nil:
			os.RemoveAll(path)
			lock.Close()
		case errors.Is(err, fs.ErrNotExist) && time.Since(info.ModTime()) > unlockedAge:
			os.Remove(path) // fails unless it is empty
		}
	}
}
