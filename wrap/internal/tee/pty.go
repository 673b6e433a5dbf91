package tee

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// NewTerminal returns the ends of a pseudoterminal for a worker, of the size of the terminal where
// its output is shown. Reading does not block. It neither echoes nor changes what the worker
// writes: the terminal where that is shown does.
func NewTerminal(shown int) (read, write int, err error) {
	const mode = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	if read, err = unix.Open("/dev/ptmx", mode|unix.O_NONBLOCK, 0); err != nil {
		return -1, -1, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	if write, err = openWorkerEnd(read, mode); err != nil {
		unix.Close(read)
		return -1, -1, err
	}
	if err = keepBytes(write); err != nil {
		unix.Close(read)
		unix.Close(write)
		return -1, -1, os.NewSyscallError("tcsetattr", err)
	}
	resize(read, shown)
	return read, write, nil
}

// openWorkerEnd opens the other end of a pseudoterminal: by its descriptor, which works without
// /dev/pts, or where the kernel cannot do that (before Linux 4.13), by its name.
func openWorkerEnd(read, mode int) (write int, err error) {
	if err := unix.IoctlSetPointerInt(read, unix.TIOCSPTLCK, 0); err != nil {
		return -1, os.NewSyscallError("unlockpt", err)
	}
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(read), unix.TIOCGPTPEER, uintptr(mode))
	if errno == 0 {
		return int(fd), nil
	}
	number, err := unix.IoctlGetInt(read, unix.TIOCGPTN)
	if err != nil {
		return -1, os.NewSyscallError("ptsname", err)
	}
	name := fmt.Sprintf("/dev/pts/%d", number)
	if write, err = unix.Open(name, mode, 0); err != nil {
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return write, nil
}

// keepBytes lets a terminal pass on what is written as it is, and echo nothing.
func keepBytes(fd int) error {
	termios, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	termios.Lflag &^= unix.ECHO
	termios.Oflag &^= unix.OPOST
	return unix.IoctlSetTermios(fd, unix.TCSETS, termios)
}

// resize gives a pseudoterminal the size of another terminal, and reports whether it had another
// one.
func resize(fd, shown int) (changed bool) {
	now, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	size, errShown := unix.IoctlGetWinsize(shown, unix.TIOCGWINSZ)
	if err != nil || errShown != nil || *now == *size {
		return false
	}
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) == nil
}

// IsTerminal tells whether a descriptor is a terminal.
func IsTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// SameTerminal tells whether two descriptors are the same terminal, which may have been opened by
// its name or as /dev/tty.
func SameTerminal(a, b int) bool {
	of, errA := unix.IoctlGetUint32(a, unix.TIOCGDEV)
	other, errB := unix.IoctlGetUint32(b, unix.TIOCGDEV)
	return errA == nil && errB == nil && of == other
}

// What a pseudoterminal holds, and how long what is read of it waits.
const (
	// ptySize is about how much a worker can write before it has to wait.
	ptySize = 8 << 10
	// ptyMost is more than can be unread.
	ptyMost = 128 << 10
	// ptyRest is how long what a worker writes is awaited before it is read: a progress bar is often
	// several writes, which are then shown as one, as are the lines of a traceback.
	ptyRest = 300 * time.Microsecond
	// bulk is how much is read at once of a worker that writes much. Of what ends within a line then,
	// the part of the line is shown after partWait unless more of it comes: the reader may have come
	// in the middle of a write, whose rest a thread of the kernel passes on, which may have to wait
	// for a processor. Otherwise it is meant, as a prompt.
	bulk     = 2 << 10
	partWait = 50 * time.Millisecond
)

// readable tells whether a read would not block.
func readable(fd int) bool {
	set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(set, 0)
		if err != unix.EINTR {
			return n > 0
		}
	}
}

// readSome reads from a pseudoterminal, of which one read returns at most 4095 bytes, until there
// is nothing more or the buffer is nearly full. empty says that there was nothing more.
func readSome(fd int, b []byte) (n int, empty bool, err error) {
	for len(b)-n >= 4<<10 {
		m, err := unix.Read(fd, b[n:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return n, true, nil
		case m <= 0 && n > 0: // the next read tells it again
			return n, false, nil
		case m <= 0:
			return 0, false, err
		}
		n += m
	}
	return n, false, nil
}
