// Package descriptor tells the descriptors of files, and duplicates them.
package descriptor

import (
	"cmp"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Of returns the descriptor of f, which the caller keeps open. Unlike f.Fd it does not change the
// mode of f, which other processes may share.
func Of(f *os.File) (n int, err error) {
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { n = int(fd) })
	}
	return n, err
}

// Duplicate returns a duplicate of the descriptor of a file or socket, which programs that are
// executed do not get.
func Duplicate(of syscall.Conn) (f *os.File, err error) {
	raw, err := of.SyscallConn()
	if err != nil {
		return nil, err
	}
	var n int
	controlled := raw.Control(func(fd uintptr) { n, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if controlled != nil || err != nil {
		return nil, cmp.Or(controlled, err)
	}
	return os.NewFile(uintptr(n), "duplicate"), nil
}
