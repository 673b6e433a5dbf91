// Package hint gives errors suggestions: what to try about them.
package hint

// hinted is an error with a suggestion.
type hinted struct {
	error
	hint string
}

// With is err with a suggestion, which its method Hint returns.
func With(err error, hint string) error { return hinted{err, hint} }

func (h hinted) Hint() string  { return h.hint }
func (h hinted) Unwrap() error { return h.error }
