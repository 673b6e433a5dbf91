package meet

import (
	"fmt"
	"time"
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
