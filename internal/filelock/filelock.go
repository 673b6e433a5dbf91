// Package filelock locks files with flock(2). The kernel releases a lock when its holder closes the
// file or ends. No function waits for a lock.
//
// What a lock protects, and when its file is removed, is decided by the caller.
package filelock

import (
	"os"
	"syscall"
)

// A File can be locked as long as it is open.
type File struct{ *os.File }

// Open opens a file for reading and writing. It does not follow a symbolic link at path. With
// os.O_CREATE in flags it creates a missing file with mode 0600.
func Open(path string, flags int) (File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|flags, 0o600)
	return File{f}, err
}

// TryLock takes the lock. It fails with syscall.EWOULDBLOCK if another open file holds it.
func (f File) TryLock() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// Named reports whether the file still exists under the name it was opened with. If a holder
// removes the file when it is done, those who opened it earlier can lock only the removed file,
// which nobody else can open.
func (f File) Named() bool {
	mine, err1 := f.Stat()
	named, err2 := os.Lstat(f.Name())
	return err1 == nil && err2 == nil && os.SameFile(mine, named)
}
