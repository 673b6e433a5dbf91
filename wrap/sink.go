package wrap

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sink is where a pump writes to.
type sink struct {
	file *os.File // our own descriptor
}

// openSink makes a sink of to, which stays the caller's.
//
// The reader of a pipe may be stuck, so a pipe is opened anew for non-blocking writes: to set that on to itself would
// set it for all processes that share it. Files, sockets and what cannot be opened anew are merely duplicated.
func openSink(to *os.File) (*sink, error) {
	fd, err := number(to)
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFIFO {
		again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			return &sink{os.NewFile(uintptr(again), to.Name())}, nil
		}
	}
	// Not under its own number: Go ends a process that gets EPIPE on descriptor 2.
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return &sink{os.NewFile(uintptr(again), to.Name())}, nil
}

// write writes all of b. The error is that of a reader that has gone, or the deadline's; others (a full disk) are the
// reader's own trouble, and what it misses is only remembered.
func (s *sink) write(b []byte) error {
	_, err := s.file.Write(b)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

// hurry makes writes fail from until on, where they can be waited for.
func (s *sink) hurry(until time.Time) {
	_ = s.file.SetWriteDeadline(until) // a regular file has no deadline and needs none
}

func (s *sink) close() { s.file.Close() }

// number is the descriptor of f, which the caller keeps open. Unlike Fd it leaves the mode of f alone.
func number(f *os.File) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	n := -1
	err = raw.Control(func(fd uintptr) { n = int(fd) })
	return n, err
}

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool {
	fd, err := number(f)
	if err != nil {
		return false
	}
	_, err = unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}
