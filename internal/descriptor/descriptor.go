// Package descriptor tells the descriptors of files.
package descriptor

import "os"

// Of returns the descriptor of f, which the caller keeps open. Unlike f.Fd it does not change the
// mode of f, which other processes may share.
func Of(f *os.File) (n int, err error) {
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { n = int(fd) })
	}
	return n, err
}
