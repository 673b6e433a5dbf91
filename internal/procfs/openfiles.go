package procfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
)

// OpenFiles lists what the process pid has open, from the links in /proc/PID/fd (proc(5)), such as
// "/dev/null" and "socket:[4711]"; at most limit files if limit is positive. The error wraps
// fs.ErrPermission if the process is another user's.
func OpenFiles(proc fs.FS, pid, limit int) (targets []string, err error) {
	err = openFiles(proc, pid, limit, func(_, target string) { targets = append(targets, target) })
	return targets, err
}

// openFiles calls use with each descriptor of the process and what it refers to.
func openFiles(proc fs.FS, pid, limit int, use func(fd, target string)) error {
	dir := path.Join(strconv.Itoa(pid), "fd")
	file, err := proc.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	list, isDir := file.(fs.ReadDirFile)
	if !isDir {
		return &fs.PathError{Op: "readdir", Path: dir, Err: errors.ErrUnsupported}
	}
	entries, err := list.ReadDir(limit)
	if err != nil && err != io.EOF {
		return err
	}
	for _, e := range entries {
		if target, err := fs.ReadLink(proc, path.Join(dir, e.Name())); err == nil {
			use(e.Name(), target)
		} // otherwise it has been closed
	}
	return nil
}
