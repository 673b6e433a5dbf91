// Package waitid asks the kernel what has become of the children of this process (waitid(2)),
// without waiting for it.
package waitid

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Change is a change of the state of a child.
type Change struct {
	PID  int   // 0 if no child has changed
	Code int32 // CLD_EXITED and others
}

// Exited is the code of a child that has ended by itself (CLD_EXITED).
const Exited = 1

// Any returns a change of any child, of the events that the options of waitid(2) name. The error is
// ECHILD if there are no children.
func Any(options int) (Change, error) { return ask(unix.P_ALL, 0, options) }

// Of returns a change of one child. The error is ECHILD if it is none, or was reaped.
func Of(pid, options int) (Change, error) { return ask(unix.P_PID, pid, options) }

// HaveNone tells whether this process has no children.
func HaveNone() bool {
	_, err := Any(unix.WEXITED | unix.WNOWAIT)
	return errors.Is(err, unix.ECHILD)
}

// siginfo is the kernel's, as waitid(2) fills it. unix.Siginfo has the same size.
type siginfo struct {
	Signo, Errno, Code, _ int32
	PID, UID, Status      int32
	_                     [100]byte
}

func ask(kind, id, options int) (Change, error) {
	var info siginfo
	to := (*unix.Siginfo)(unsafe.Pointer(&info))
	err := unix.Waitid(kind, id, to, options|unix.WNOHANG, nil)
	return Change{PID: int(info.PID), Code: info.Code}, err
}
