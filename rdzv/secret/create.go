package secret

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// create writes a new token to the file path in dir, with mode 0600. It fails with fs.ErrExist if
// path exists, and no other process ever reads a part of the token there.
func create(dir, path string) error {
	err := createUnnamed(dir, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return createNamed(dir, path) // as on NFS, or without /proc
}

// createUnnamed gives path to the file as its first name, so that nothing is left of a process that
// is killed before.
func createUnnamed(dir, path string) error {
	f, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := writeToken(f); err != nil {
		return err
	}
	own := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	return unix.Linkat(unix.AT_FDCWD, own, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}

// temporaryName is how the temporary names of createNamed begin, which it needs for much less time
// than removeAfter.
const (
	temporaryName = ".token-"
	removeAfter   = time.Minute
)

// createNamed gives path to the file as a second name, which is atomic on NFS as well.
func createNamed(dir, path string) error {
	f, err := os.CreateTemp(dir, temporaryName+"*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := writeToken(f); err != nil {
		return err
	}
	if info, err := f.Stat(); err == nil {
		removeBefore(dir, info.ModTime().Add(-removeAfter))
	}
	return os.Link(f.Name(), path)
}

// removeBefore removes the temporary files of processes that were killed: those that were last
// written before t, on the clock of the file system. Other users cannot write to dir.
func removeBefore(dir string, t time.Time) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), temporaryName) {
			continue
		}
		if info, err := e.Info(); err == nil && info.ModTime().Before(t) {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

func writeToken(f *os.File) error {
	_, err := io.WriteString(f, NewToken()+"\n")
	return errors.Join(err, f.Sync())
}
