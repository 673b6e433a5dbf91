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
	dir := path.Join(strconv.Itoa(pid), "fd")
	file, err := proc.Open(dir)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	list, isDir := file.(fs.ReadDirFile)
	if !isDir {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: errors.ErrUnsupported}
	}
	entries, err := list.ReadDir(limit)
	if err != nil && err != io.EOF {
		return nil, err
	}
	for _, e := range entries {
		if target, err := fs.ReadLink(proc, path.Join(dir, e.Name())); err == nil {
			targets = append(targets, target)
		} // otherwise it has been closed
	}
	return targets, nil
}
