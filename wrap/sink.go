package wrap

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sink is the destination of a pump.
type sink struct {
	file *os.File // a descriptor of its own
}

// openSink returns a sink that writes to the file to, which remains the caller's.
//
// A pipe whose reader does not read must not block the pump, so it is opened again for non-blocking
// writes: to set O_NONBLOCK on to itself would set it in all processes that share it. Files,
// sockets and pipes that cannot be opened again are duplicated.
func openSink(to *os.File) (*sink, error) {
	fd, err := descriptor(to)
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFIFO {
		const mode = unix.O_WRONLY | unix.O_NONBLOCK | unix.O_CLOEXEC
		again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), mode, 0)
		if err == nil {
			return &sink{os.NewFile(uintptr(again), to.Name())}, nil
		}
	}
	// At least 3: Go ends a process that gets EPIPE when it writes to descriptor 1 or 2.
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return &sink{os.NewFile(uintptr(again), to.Name())}, nil
}

// write writes all of b. It returns an error if the reader has closed its end or at the deadline.
// Other errors (a full disk) are ignored: the tail still keeps what could not be written.
func (s *sink) write(b []byte) error {
	_, err := s.file.Write(b)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

// setDeadline makes writes fail after until.
func (s *sink) setDeadline(until time.Time) {
	_ = s.file.SetWriteDeadline(until) // regular files support no deadline and need none
}

func (s *sink) close() { s.file.Close() }

// descriptor returns the descriptor of f, which the caller keeps open. Unlike f.Fd it does not
// change the mode of f.
func descriptor(f *os.File) (int, error) {
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
	fd, err := descriptor(f)
	if err != nil {
		return false
	}
	_, err = unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}
