package meet

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"rdzv/internal/portuser"
)

// A NotFoundError means that no store was found before the context ended.
type NotFoundError struct {
	Searching
	Cause error // why the search ended
}

// Unwrap returns the cause, such as context.DeadlineExceeded.
func (e *NotFoundError) Unwrap() error { return e.Cause }

// Error says in one line why the store was not found.
func (e *NotFoundError) Error() string { return e.Searching.String() }

// A RefusedError means that the host of the store has a different token or another version, so that
// waiting for it does not help.
type RefusedError struct {
	By    Rejected      // a DifferentToken or DifferentVersion
	After time.Duration // since it refused this agent for the first time; 0 if there was no search
	Ended bool          // it has ended since, and After is the time without a store
}

func (e *RefusedError) Error() string {
	text := e.By.Agent() + " has refused this agent"
	switch {
	case e.Ended:
		text += fmt.Sprintf(" and ended %v ago", e.After)
	case e.After != 0:
		text += fmt.Sprintf(" for %v", e.After)
	}
	return text
}

// A PortInUseError means that the port in --store, or every port of the range, is in use on the
// host that is to host the store.
type PortInUseError struct {
	Err    error  // of the system
	User   string // who uses it; "" if that is not known
	Advice string // what to do about that; "" if only another port helps
}

func (e *PortInUseError) Error() string {
	if e.User == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v (by %s)", e.Err, e.User)
}

// Unwrap returns the error of the system.
func (e *PortInUseError) Unwrap() error { return e.Err }

// inUseBy adds to an error about ports that are in use who uses them.
func inUseBy(err error, proc fs.FS, ports []int) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	return &PortInUseError{Err: err, User: portuser.All(proc, ports)}
}
