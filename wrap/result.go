package wrap

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// Result is how a worker ended.
type Result struct {
	// PID is its process id; 0 if it never ran.
	PID int
	// Code is its exit code, 0 to 255; where it could not be started, 127 (not there) or 126 (not executable).
	Code int
	// Signal is the signal that it died of; 0 if it exited.
	Signal syscall.Signal
	// Stopped says that it had been told to stop before it ended, by Run or (Stop.Delivered) by others.
	Stopped bool
	// Outside is a signal that had reached the worker's whole process group before it ended, known if Tree.Source is set:
	// the last SIGTERM, SIGINT, SIGHUP or SIGQUIT, or the signal it died of. Then its end may be no failure of its own.
	// 0 for one that was Stopped, of which that is known anyway.
	Outside syscall.Signal
	// Took is how long it ran.
	Took time.Duration
	// Stderr is the end of its standard error, at most 64 KiB, if it was captured.
	Stderr []byte
	// Err is why it could not be started, or ErrWatchdog if it was killed for want of its watchdog; else nil.
	Err error
}

// ExitCode is the code a shell would give: Code, or 128 + Signal.
func (r Result) ExitCode() int {
	if r.Signal != 0 {
		return 128 + int(r.Signal)
	}
	return r.Code
}

// fill takes in the status that wait gave.
func (r *Result) fill(status syscall.WaitStatus) {
	if status.Signaled() {
		r.Signal = status.Signal()
		return
	}
	r.Code = status.ExitStatus()
}

// ErrWatchdog says that the watchdog died before its workers.
var ErrWatchdog = errors.New("the watchdog died")

// LeftError names processes of the tree that did not die of SIGKILL in time.
type LeftError struct {
	Left []Process
}

// Process is a process by number and name.
type Process struct {
	PID  int
	Name string
}

// Error names them.
func (e *LeftError) Error() string {
	var all []string
	for _, p := range e.Left {
		all = append(all, fmt.Sprintf("%d (%s)", p.PID, p.Name))
	}
	return "cannot kill process " + strings.Join(all, ", ")
}

// refused is the Result of a worker that the kernel would not start.
func refused(w Worker, errno syscall.Errno) Result {
	r := Result{Code: 126, Err: fmt.Errorf("cannot start %q: %w", w.Path, errno)}
	if errno == syscall.ENOENT {
		r.Code = 127
	}
	return r
}
