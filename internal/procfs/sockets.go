package procfs

import (
	"bytes" // not strings, which is initialised after reflect: the watchdog runs before
	"io/fs"
	"path"
	"strconv"
)

// Sockets lists the inodes of the sockets that the process pid has open, from the links in
// /proc/PID/fd (proc(5)): "socket:[INODE]". The error wraps fs.ErrPermission if the process is
// another user's.
func Sockets(proc fs.FS, pid int) ([]uint64, error) {
	dir := path.Join(strconv.Itoa(pid), "fd")
	entries, err := fs.ReadDir(proc, dir)
	if err != nil {
		return nil, err
	}
	var inodes []uint64
	for _, e := range entries {
		target, err := fs.ReadLink(proc, path.Join(dir, e.Name()))
		if err != nil {
			continue // it has been closed
		}
		number, isSocket := bytes.CutPrefix([]byte(target), []byte("socket:["))
		inode, err := strconv.ParseUint(string(bytes.TrimSuffix(number, []byte("]"))), 10, 64)
		if isSocket && err == nil {
			inodes = append(inodes, inode)
		}
	}
	return inodes, nil
}
