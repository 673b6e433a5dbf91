package meet

import (
	"fmt"
	"strings"
	"time"
)

// A NotFoundError means that no store was found before the context ended.
type NotFoundError struct {
	Searching
	Rejections []Rejected
	Cause      error // why the search ended
}

// Unwrap returns the cause, such as context.DeadlineExceeded.
func (e *NotFoundError) Unwrap() error { return e.Cause }

// Error says in one line why the store was not found: agents that do not belong to the job explain
// that better than the answers of addresses.
func (e *NotFoundError) Error() string {
	if len(e.Rejections) == 0 {
		return e.Searching.String()
	}
	var found []string
	for _, r := range e.Rejections {
		found = append(found, r.describe())
	}
	return "found no agent of this job, but " + strings.Join(found, ", and ")
}

// A RefusedError means that the host of the store has a different token, so that waiting for it
// does not help.
type RefusedError struct {
	DifferentToken
	After time.Duration // since it refused this agent for the first time; 0 if there was no search
}

func (e *RefusedError) Error() string {
	text := hostAndAddr(e.Host, e.Addr) + " has refused this agent"
	if e.After != 0 {
		text += fmt.Sprintf(" for %v", e.After)
	}
	return text
}
