package procfs

import (
	"bytes" // not strings, which is initialised after reflect: the runner runs before
	"errors"
	"io/fs"
	"strconv"
)

// Sockets returns the inodes of the sockets that the process pid has open. The error wraps
// fs.ErrPermission if the process is another user's. One that has ended has none.
func Sockets(proc fs.FS, pid int) (inodes []uint64, err error) {
	files, err := OpenFiles(proc, pid, 0)
	for _, target := range files {
		text, isSocket := bytes.CutPrefix([]byte(target), []byte("socket:["))
		inode, err := strconv.ParseUint(string(bytes.TrimSuffix(text, []byte("]"))), 10, 64)
		if isSocket && err == nil {
			inodes = append(inodes, inode)
		}
	}
	if errors.Is(err, fs.ErrPermission) && hasEnded(proc, pid) {
		return nil, nil
	}
	return inodes, err
}

// hasEnded tells whether a process has no memory any more. Its files in /proc then belong to root
// (task_dump_owner in the kernel's fs/proc/base.c), until its parent has reaped it.
func hasEnded(proc fs.FS, pid int) bool {
	text, err := fs.ReadFile(proc, strconv.Itoa(pid)+"/statm")
	return err == nil && bytes.HasPrefix(text, []byte("0 "))
}
