package procfs

import (
	"bytes" // not strings, which is initialised after reflect: the watchdog runs before
	"io/fs"
	"strconv"
)

// Sockets lists the inodes of the sockets that the process pid has open: "socket:[INODE]". The
// error wraps fs.ErrPermission if the process is another user's.
func Sockets(proc fs.FS, pid int) ([]uint64, error) {
	targets, err := OpenFiles(proc, pid, 0)
	if err != nil {
		return nil, err
	}
	var inodes []uint64
	for _, target := range targets {
		number, isSocket := bytes.CutPrefix([]byte(target), []byte("socket:["))
		inode, err := strconv.ParseUint(string(bytes.TrimSuffix(number, []byte("]"))), 10, 64)
		if isSocket && err == nil {
			inodes = append(inodes, inode)
		}
	}
	return inodes, nil
}
