package wrap

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// pollable returns a file that supports deadlines.
func pollable(fd int) *os.File {
	_ = unix.SetNonblock(fd, true) // cannot fail
	return os.NewFile(uintptr(fd), "")
}

// pipe returns a pipe. Only the read end supports deadlines.
func pipe() (read, write *os.File, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	return pollable(ends[0]), os.NewFile(uintptr(ends[1]), ""), nil
}

// openSink returns a file of its own for writing to the file to, which remains the caller's.
//
// A pipe whose reader does not read must not block the pump, so it is opened again for non-blocking
// writes: to set O_NONBLOCK on to itself would set it in all processes that share it. Files,
// sockets and pipes that cannot be opened again are duplicated.
func openSink(to *os.File) (*os.File, error) {
	fd, err := descriptor(to)
	if err != nil {
		return nil, err
	}
	again := -1
	if info, err := to.Stat(); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		const mode = unix.O_WRONLY | unix.O_NONBLOCK | unix.O_CLOEXEC
		again, _ = unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), mode, 0)
	}
	if again < 0 {
		// At least 3: Go ends a process that gets EPIPE when it writes to descriptor 1 or 2.
		again, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(again), to.Name()), nil
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
