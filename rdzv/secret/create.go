package secret

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// create writes a new token to the file path. It fails with fs.ErrExist if path exists. Where the
// file system has no files without a name (NFS), the token has a temporary name first.
func create(dir, path string) error {
	err := createUnnamed(dir, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return createNamed(dir, path)
}

// createUnnamed writes the token to a file without a name, and then gives it its name, which is
// atomic. If the agent is killed meanwhile, nothing is left.
func createUnnamed(dir, path string) error {
	f, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := writeToken(f); err != nil {
		return err
	}
	unnamed := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	return unix.Linkat(unix.AT_FDCWD, unnamed, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}

// createNamed gives the temporary file a second name, which is atomic on NFS as well.
func createNamed(dir, path string) error {
	f, err := os.CreateTemp(dir, ".token-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err = errors.Join(writeToken(f), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

func writeToken(f *os.File) error {
	_, err := io.WriteString(f, NewToken()+"\n")
	return errors.Join(err, f.Sync())
}
