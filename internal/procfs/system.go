package procfs

import (
	"io/fs"
	"os"
	"syscall"
)

// System is the /proc of this system.
var System fs.FS = system{os.DirFS("/proc").(directory)}

type system struct{ directory }

// directory is what os.DirFS can do.
type directory interface {
	fs.ReadDirFS
	fs.ReadLinkFS
	fs.StatFS
}

// ReadFile needs three or four system calls, that of package os nine: it tries to have Go's poller
// wait for the file. What kills a tree reads dozens, and must not take long.
func (system) ReadFile(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	fd, err := retry(func() (int, error) {
		return syscall.Open("/proc/"+name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer syscall.Close(fd)
	text := make([]byte, 0, 1024)
	for {
		n, err := retry(func() (int, error) { return syscall.Read(fd, text[len(text):cap(text)]) })
		if err != nil {
			return text, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		if n == 0 {
			return text, nil
		}
		if text = text[:len(text)+n]; len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
	}
}

// retry calls a function again that a signal has interrupted.
func retry(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != syscall.EINTR {
			return n, err
		}
	}
}
