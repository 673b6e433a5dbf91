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

// dir is the private directory of one store. Its owner holds a lock on the file
// "lock" in it for as long as it lives, so that a directory whose owner was
// killed can be told from one in use: the next store of this user removes it.
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
			return nil, fmt.Errorf("cannot make the store's directory in %q: %w", parent, err)
		}
		lock, err := lockDir(path, os.O_CREATE)
		if err == nil && lock.Named() {
			return &dir{path: path, lock: lock}, nil
		}
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) {
			os.RemoveAll(path)
			return nil, fmt.Errorf("cannot lock the store's directory %q: %w", path, err)
		}
		// Another store that starts this moment took the directory for abandoned,
		// between the making of the file and its locking.
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

// lockDir takes the lock of the directory without waiting.
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

// unlocked is how old a directory without a lock file is when its maker must be
// dead: the file is made right after the directory.
const unlocked = time.Minute

// removeAbandoned removes what killed stores of this user have left in parent.
func removeAbandoned(parent string) {
	paths, _ := filepath.Glob(filepath.Join(escape(parent), dirPattern)) // escaped, it is a good pattern
	for _, path := range paths {
		info, ok := ours(path)
		if !ok {
			continue
		}
		lock, err := lockDir(path, 0)
		switch {
		case err == nil:
			os.RemoveAll(path)
			lock.Close()
		case errors.Is(err, fs.ErrNotExist) && time.Since(info.ModTime()) > unlocked:
			os.Remove(path) // only if it is empty
		}
	}
}

// escape makes a path a pattern that matches it alone.
func escape(path string) string {
	var pattern []byte
	for _, c := range []byte(path) {
		if c == '*' || c == '?' || c == '[' || c == '\\' {
			pattern = append(pattern, '\\')
		}
		pattern = append(pattern, c)
	}
	return string(pattern)
}

// ours tells whether path is a directory, not a link to one, of this user alone:
// parent may be /tmp, where anybody can make any name.
func ours(path string) (fs.FileInfo, bool) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != fs.ModeDir|0o700 {
		return nil, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return info, ok && int(stat.Uid) == os.Geteuid()
}
