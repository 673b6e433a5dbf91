package procfs

import (
	"bytes" // not strings, which is initialised after reflect: the holder runs before
	"errors"
	"io/fs"
	"strconv"
)

// A Socket is one that a process has open: FD is a link to "socket:[INODE]".
type Socket struct {
	FD    int
	Inode uint64
}

// Sockets lists the sockets that the process pid has open. The error wraps fs.ErrPermission if the
// process is another user's. One that has ended has none.
func Sockets(proc fs.FS, pid int) (sockets []Socket, err error) {
	err = openFiles(proc, pid, 0, func(fd, target string) {
		text, isSocket := bytes.CutPrefix([]byte(target), []byte("socket:["))
		inode, err1 := strconv.ParseUint(string(bytes.TrimSuffix(text, []byte("]"))), 10, 64)
		number, err2 := strconv.Atoi(fd)
		if isSocket && err1 == nil && err2 == nil {
			sockets = append(sockets, Socket{number, inode})
		}
	})
	if errors.Is(err, fs.ErrPermission) && hasEnded(proc, pid) {
		return nil, nil
	}
	return sockets, err
}

// hasEnded tells whether a process has no memory any more. Its files in /proc then belong to root
// (task_dump_owner in the kernel's fs/proc/base.c), until its parent has reaped it.
func hasEnded(proc fs.FS, pid int) bool {
	text, err := fs.ReadFile(proc, strconv.Itoa(pid)+"/statm")
	return err == nil && bytes.HasPrefix(text, []byte("0 "))
}
