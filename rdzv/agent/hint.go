package agent

import (
	"errors"

	"rdzv/envmap"
	"rdzv/rdzv/meet"
)

// hinted is an error with a suggestion.
type hinted struct {
	error
	hint string
}

func (h hinted) Hint() string  { return h.hint }
func (h hinted) Unwrap() error { return h.error }

// Hint is what to try about an error of [Plan] or [Run], or of any error with a method Hint; ""
// if nothing is known to help.
func Hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	var notFound *meet.NotFoundError
	if errors.As(err, &notFound) {
		return notFound.Hint
	}
	var e *envmap.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}
