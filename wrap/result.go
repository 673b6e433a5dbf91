package wrap

import (
	"errors"
	"syscall"
	"time"
)

// Result is how a worker ended.
type Result struct {
	// PID is its process id; 0 if it was not started.
	PID int
	// Code is its exit code, 0 to 255; 127 (not found) or 126 (not executable) if it could not be
	// started.
	Code int
	// Signal is the signal that killed it; 0 if it exited.
	Signal syscall.Signal
	// Stopped says that it had received a signal to end before it ended, from Run or (see
	// Stop.Delivered) from elsewhere.
	Stopped bool
	// GroupSignal is a signal that its whole process group received before it ended: the signal
	// that killed it, or the last SIGTERM, SIGINT, SIGHUP or SIGQUIT. Its end may then be no
	// failure of its own. It is 0 if there was none, without Tree.Source, and if Stopped.
	GroupSignal syscall.Signal
	// Took is how long it ran.
	Took time.Duration
	// Stderr is the end of its standard error, at most 64 KiB, with Worker.Capture or Worker.Output;
	// if Joined, it is the end of what it wrote to standard output and standard error. Unread is why
	// there is none although Worker.Capture is set: no pseudoterminal could be had.
	Stderr []byte
	Joined bool
	Unread error `json:"-"`
	// Err is why it could not be started, ErrLeaseOver, or ErrRunner if it was killed because the
	// runner died, or an OutputError; else nil.
	Err error `json:"-"`
}

// ExitCode is the exit code as a shell reports it: Code, or 128 + Signal.
func (r Result) ExitCode() int {
	if r.Signal != 0 {
		return 128 + int(r.Signal)
	}
	return r.Code
}

// setStatus sets Code or Signal from a wait status.
func (r *Result) setStatus(status syscall.WaitStatus) {
	if status.Signaled() {
		r.Signal = status.Signal()
		return
	}
	r.Code = status.ExitStatus()
}

// ErrRunner is the error of Run if the runner died before its tree had ended.
var ErrRunner = errors.New("the runner died")

// ErrLogBlocked is the reason why a log was given up that was blocked for 5 s.
var ErrLogBlocked = errors.New("the file system did not respond for 5s")

// ErrNotRead is the reason why output was not shown that nobody had read 1 s after everything had
// ended.
var ErrNotRead = errors.New("nothing was read for 1s")

// OutputError says that some of what a worker wrote to stdout could not be shown, and is in no log.
// If the worker itself succeeded its Code is then 1: written by itself, the output would have been
// an error that it could see.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return "cannot write to stdout: " + e.Err.Error() }
func (e *OutputError) Unwrap() error { return e.Err }
