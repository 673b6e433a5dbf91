package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// dir is the private directory of one store. Its owner holds a lock on the file
// "lock" in it for as long as it lives, so that a directory whose owner was
// killed can be told from one in use: the next store of this user removes it.
type dir struct {
	path string
	lock *os.File
}

const dirPattern = "rdzv-store-*"

func newDir(parent string) (*dir, error) {
	removeAbandoned(parent)
	path, err := os.MkdirTemp(parent, dirPattern)
	if err != nil {
		return nil, fmt.Errorf("cannot make the store's directory in %q: %w", parent, err)
	}
	lock, err := lockDir(path, os.O_CREATE)
	if err != nil {
		os.RemoveAll(path)
		return nil, fmt.Errorf("cannot lock the store's directory %q: %w", path, err)
	}
	return &dir{path: path, lock: lock}, nil
}

func (d *dir) remove() error {
	defer d.lock.Close()
	if err := os.RemoveAll(d.path); err != nil {
		return fmt.Errorf("cannot remove the store's directory: %w", err)
	}
	return nil
}

// lockDir takes the lock of the directory without waiting.
func lockDir(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// removeAbandoned removes what killed stores of this user have left in parent. A
// directory that has no lock file yet is being made this moment and is let be.
func removeAbandoned(parent string) {
	paths, _ := filepath.Glob(filepath.Join(parent, dirPattern)) // the pattern is good
	for _, path := range paths {
		if !ours(path) {
			continue
		}
		if lock, err := lockDir(path, 0); err == nil {
			os.RemoveAll(path)
			lock.Close()
		}
	}
}

// ours tells whether path is a directory, not a link to one, of this user alone:
// parent may be /tmp, where anybody can make any name.
func ours(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != fs.ModeDir|0o700 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
