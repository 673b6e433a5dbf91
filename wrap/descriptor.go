package wrap

import (
	"os"

	"golang.org/x/sys/unix"
)

// pollable returns a file that supports deadlines.
func pollable(fd int) *os.File {
	_ = unix.SetNonblock(fd, true) // cannot fail
	return os.NewFile(uintptr(fd), "")
}

// descriptor returns the descriptor of f, which the caller keeps open. Unlike f.Fd it does not
// change the mode of f.
func descriptor(f *os.File) (n int, err error) {
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { n = int(fd) })
	}
	return n, err
}
