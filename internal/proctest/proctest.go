// Package proctest is what the tests of several packages need of the kernel to try
// processes as a user's shell and terminal start them.
package proctest

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// CatchIgnored makes the signals that tests send reach the processes that they start.
// A shell starts a background job with SIGINT ignored, nohup ignores SIGHUP, and that is
// inherited; a signal that is caught is not ignored in a child.
func CatchIgnored() {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// OpenTerminal returns the two ends of a terminal of the kernel's, which nobody
// controls yet.
func OpenTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var name string
	_ = raw.Control(func(fd uintptr) {
		err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		n, _ := unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		name = fmt.Sprintf("/dev/pts/%d", n)
	})
	if err == nil {
		slave, err = os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}
