// Package outfile writes the files that a user names for what rdzv itself has to say: the report
// and the events. The errors of its functions do not contain the path.
package outfile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Append opens the file at path to append to it, and creates it if it does not exist. A FIFO
// without a reader is an error instead of a wait without end.
func Append(path string) (*os.File, error) {
	target, err := follow(path)
	if err != nil {
		return nil, Cause(err)
	}
	flags := os.O_WRONLY | os.O_APPEND | os.O_CREATE | unix.O_NONBLOCK
	if !isDescriptor(target) {
		flags |= unix.O_NOFOLLOW // somebody may have made a link meanwhile
	}
	f, err := os.OpenFile(target, flags, 0o666)
	return f, Cause(err)
}

// Replaceable returns the regular, or not yet existing, file that path names after following links;
// ok is false for anything else. /dev/stdout and other names of open file descriptors are not
// replaceable: the file can contain the program's output.
func Replaceable(path string) (target string, ok bool, err error) {
	if target, err = follow(path); err != nil {
		return "", false, Cause(err)
	}
	if isDescriptor(target) {
		return target, false, nil
	}
	info, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return target, true, nil
	}
	return target, err == nil && info.Mode().IsRegular(), nil
}

// Replace renames a new file to target, which is Replaceable, so that no reader sees a part of it.
// If the directory does not permit that, it overwrites the existing file.
func Replace(target string, b []byte) error {
	var mode fs.FileMode // that the umask leaves
	if before, notThere := os.Stat(target); notThere == nil {
		mode = before.Mode().Perm()
	}
	err := replace(target, bytes.NewReader(b), mode)
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EROFS) &&
		!errors.Is(err, unix.EBUSY) {
		return Cause(err)
	}
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o666)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Close())
	}
	return Cause(err)
}

// ReplaceBy renames a new file with the content of src and this mode, whatever the umask is, to
// target, so that no process reads or executes a part of it. What runs from the old file goes on.
func ReplaceBy(target string, src io.Reader, mode fs.FileMode) error {
	return Cause(replace(target, src, mode))
}

func replace(target string, src io.Reader, mode fs.FileMode) error {
	aside := filepath.Join(directory(target), ".rdzv-"+rand.Text())
	err := create(aside, src, mode)
	if err == nil {
		err = os.Rename(aside, target)
	}
	if err != nil {
		os.Remove(aside)
	}
	return err
}

// create creates the file at path with this mode; 0 is what the umask leaves.
func create(path string, src io.Reader, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if mode != 0 {
		err = f.Chmod(mode)
	}
	if err == nil {
		_, err = io.Copy(f, src)
	}
	return errors.Join(err, f.Close())
}

// isDescriptor tells whether path is a name of an open file descriptor.
func isDescriptor(path string) bool {
	name := filepath.Clean(path)
	return name == "/dev/stdout" || name == "/dev/stderr" ||
		strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/")
}

// directory is the directory of a path, with a slash at its end. filepath.Dir removes the "link/.."
// of "link/../file".
func directory(path string) string {
	if dir, _ := filepath.Split(path); dir != "" {
		return dir
	}
	return "./"
}

// Cause is the reason of an error of package os, without the path.
func Cause(err error) error {
	var named *fs.PathError
	var renamed *os.LinkError
	switch {
	case errors.Is(err, unix.ENXIO):
		return errors.New("no process has it open for reading")
	case errors.As(err, &named):
		return named.Err
	case errors.As(err, &renamed):
		return renamed.Err
	}
	return err
}
