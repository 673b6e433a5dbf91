// Package filelock locks files with flock(2): a lock is known to all processes of a host, and goes
// with its holder, however that ends. No lock is ever waited for.
//
// Who may do what with a lock, and when the file is removed, is the caller's.
package filelock

import (
	"os"
	"syscall"
)

// A File can be locked for as long as it is open.
type File struct{ *os.File }

// Open opens a file that no symbolic link may stand for; with os.O_CREATE in flags it is made, for
// this user alone.
func Open(path string, flags int) (File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|flags, 0o600)
	return File{f}, err
}

// TryLock takes the exclusive lock, or makes a shared one exclusive; syscall.EWOULDBLOCK says that
// another has a lock.
func (f File) TryLock() error { return f.flock(syscall.LOCK_EX) }

// TryShare takes a shared lock, or makes an exclusive one shared; syscall.EWOULDBLOCK says that
// another has the exclusive one.
func (f File) TryShare() error { return f.flock(syscall.LOCK_SH) }

// Unlock lets go of the lock, whichever it was.
func (f File) Unlock() error { return f.flock(syscall.LOCK_UN) }

func (f File) flock(how int) error { return syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB) }

// Named says that the file has not lost its name. A holder that removes the file when it is done
// leaves those who have opened it before with a lock that nobody else can see.
func (f File) Named() bool {
	mine, err1 := f.Stat()
	named, err2 := os.Lstat(f.Name())
	return err1 == nil && err2 == nil && os.SameFile(mine, named)
}
