// Package files writes the files that a user or a pod names for what rdzv itself has to say: the
// report, the events and the termination log. These rules hold for all of them:
//
//   - A symbolic link is followed. But in a directory where everyone can create files, such as
//     /tmp, a link or a file of another user is refused: with a link, that user could choose which
//     file of this user is written. The kernel has this rule too, proc_sys_fs(5), but only if
//     fs.protected_symlinks is 1, and not for readlink and rename.
//   - A new report replaces a regular file by a rename, so that nobody reads a part of it. Anything
//     else, such as a FIFO or /dev/stdout, whose file can contain the program's output, is appended
//     to.
//   - A file system that does not respond delays a command by no more than Timeout, see Limit.
//
// The errors of its functions do not contain the path.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// target is what a path names.
type target struct {
	path string      // absolute, and without links if its directory exists
	info fs.FileInfo // nil if it does not exist
	proc bool        // it is in /proc, as the files of /dev/stdout and /dev/fd are
}

// maxLinks is the kernel's limit, path_resolution(7).
const maxLinks = 40

// resolve follows links. The directory of what it finds must exist.
func resolve(path string) (t target, err error) {
	if t.path = path; !filepath.IsAbs(path) {
		if path, err = unix.Getwd(); err != nil {
			return t, err
		}
		t.path = path + "/" + t.path // Join would remove the "link/.." of "link/../file"
	}
	for range maxLinks {
		dir, name := filepath.Split(t.path)
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			t.path = filepath.Clean(t.path)
			return t, Cause(err)
		}
		t.path = filepath.Join(dir, name)
		var system unix.Statfs_t
		if unix.Statfs(dir, &system) == nil && system.Type == unix.PROC_SUPER_MAGIC {
			t.proc = true
			t.info, err = os.Stat(t.path)
			return t, Cause(err)
		}
		t.info, err = os.Lstat(t.path)
		if errors.Is(err, fs.ErrNotExist) {
			return t, nil
		}
		if err == nil {
			err = checkOwner(dir, t.info)
		}
		if err != nil || t.info.Mode()&fs.ModeSymlink == 0 {
			return t, Cause(err)
		}
		to, err := os.Readlink(t.path)
		if err != nil {
			return t, Cause(err)
		}
		if t.path = to; !filepath.IsAbs(to) {
			t.path = dir + "/" + to
		}
	}
	return t, unix.ELOOP
}

// checkOwner refuses what is neither this user's nor the directory's owner's in a directory where
// everyone can create files.
func checkOwner(dir string, file fs.FileInfo) error {
	parent, err := os.Stat(dir)
	if err != nil {
		return err
	}
	shared := parent.Mode()&fs.ModeSticky != 0 && parent.Mode().Perm()&0o002 != 0
	if uid := owner(file); shared && uid != os.Geteuid() && uid != owner(parent) {
		return fmt.Errorf("it belongs to another user (%d), in a directory where everyone can create "+
			"files", uid)
	}
	return nil
}

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// replaceable tells whether a new file may take the place of this one.
func (t target) replaceable() bool {
	return !t.proc && (t.info == nil || t.info.Mode().IsRegular())
}

// replace renames a new file to one that is replaceable, and keeps its mode. If the directory does
// not permit that, as for a file that is mounted into a container, it overwrites the existing one.
func (t target) replace(b []byte) error {
	dir := renameio.WithTempDir(filepath.Dir(t.path)) // not that of the environment
	err := renameio.WriteFile(t.path, b, 0o666, dir)
	if t.info == nil || !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EROFS) &&
		!errors.Is(err, unix.EBUSY) {
		return Cause(err)
	}
	f, err := os.OpenFile(t.path, os.O_WRONLY|os.O_TRUNC|unix.O_NOFOLLOW, 0)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Close())
	}
	return Cause(err)
}

// openToAppend opens the file at path, and creates it if it does not exist. A FIFO without a reader
// is an error instead of a wait without end.
func openToAppend(path string) (*os.File, error) {
	t, err := resolve(path)
	if err != nil {
		return nil, err
	}
	flags := os.O_WRONLY | os.O_APPEND | os.O_CREATE | unix.O_NONBLOCK
	if !t.proc {
		flags |= unix.O_NOFOLLOW // somebody may have made a link meanwhile
	}
	f, err := os.OpenFile(t.path, flags, 0o666)
	return f, Cause(err)
}

// Check returns why nothing could be appended to the file at path, or, if replace is given, why the
// file could not be replaced; nil if it is likely that it can. It neither creates nor opens that
// file: other agents may use it, and a FIFO may get its reader later.
func Check(path string, replace bool) error {
	t, err := resolve(path)
	switch {
	case err != nil:
		return err
	case t.info != nil && t.info.IsDir():
		return unix.EISDIR
	case t.info == nil || replace && t.replaceable():
		// A quota refuses a file where access(2) says that it could be created.
		f, err := os.CreateTemp(filepath.Dir(t.path), ".rdzv-")
		if err == nil {
			return Cause(errors.Join(f.Close(), os.Remove(f.Name())))
		}
		if t.info == nil {
			return Cause(err)
		}
	}
	return unix.Faccessat(unix.AT_FDCWD, t.path, unix.W_OK, unix.AT_EACCESS)
}

// Same tells whether two paths name one regular file, or one that does not exist yet. Nothing that
// is written to a device or a FIFO replaces anything.
func Same(a, b string) bool {
	s, _ := resolve(a)
	t, _ := resolve(b)
	return s.replaceable() && t.replaceable() && (s.path == t.path || os.SameFile(s.info, t.info))
}

// Opened tells whether path names the regular file f, which is open.
func Opened(path string, f *os.File) bool {
	t, _ := resolve(path)
	open, _ := f.Stat()
	return t.replaceable() && os.SameFile(t.info, open)
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

// WriteReport replaces a regular file, and writes to anything else.
func WriteReport(path string, b []byte) error { return writeReport(path, b, false) }

// OpenToAppend opens a file to which lines are appended.
func OpenToAppend(path string) (*os.File, error) { return openToAppend(path) }
