package wrap

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"rdzv/internal/descriptor"
	"rdzv/wrap/internal/tee"
)

// terminalMode is how the terminal of this process was set before a tree ran: whether it shows what
// is typed, and passes on lines or keys. nil if this process has none or is in the background, or
// no worker can use it: a pager that reads what they write may use it then.
func terminalMode(workers []Worker) (mode *unix.Termios) {
	uses := func(w Worker) bool { return isTerminal(w.Stdin) && isTerminal(w.Stdout) }
	if !slices.ContainsFunc(workers, uses) {
		return nil
	}
	ownTerminal(func(fd int) { mode, _ = unix.IoctlGetTermios(fd, unix.TCGETS) })
	return mode
}

func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	fd, err := descriptor.Of(f)
	return err == nil && tee.IsTerminal(fd)
}

// restoreMode sets the terminal as it was if a worker has been ended by a signal, or told to end: a
// debugger, or another program that reads keys, leaves it without echo then. Shells do that for
// programs that die of a signal, but this one exits.
func restoreMode(before *unix.Termios, results []Result) {
	killed := func(r Result) bool { return r.PID != 0 && (r.Stopped || r.Signal != 0) }
	if before == nil || !slices.ContainsFunc(results, killed) {
		return
	}
	ownTerminal(func(fd int) {
		if now, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil && *now != *before {
			_ = unix.IoctlSetTermios(fd, unix.TCSETS, before) // it only remains as it is
		}
	})
}

// ownTerminal calls f with the terminal of this process, if it is in the foreground there.
func ownTerminal(f func(fd int)) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer tty.Close()
	raw, err := tty.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		group, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP)
		if err == nil && group == unix.Getpgrp() {
			f(int(fd))
		}
	})
}
