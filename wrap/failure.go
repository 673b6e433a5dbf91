package wrap

import (
	"errors"
	"slices"
	"syscall"

	"github.com/hashicorp/go-multierror"
)

// failure is an error in a message.
type failure struct {
	Text      []byte
	Errno     syscall.Errno `json:",omitempty"`
	Known     []int         `json:",omitempty"` // indices of known
	Output    *failure      `json:",omitempty"` // the reason of an OutputError
	Survivors []Process     `json:",omitempty"`
}

// known are errors that callers compare.
var known = []error{ErrLeaseOver, ErrLogBlocked, ErrNotRead}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: []byte(err.Error())}
	f.Errno, _ = errors.AsType[syscall.Errno](err)
	for i, e := range known {
		if errors.Is(err, e) {
			f.Known = append(f.Known, i)
		}
	}
	if e, ok := errors.AsType[*OutputError](err); ok {
		f.Output = failureOf(e.Err)
	}
	list := []error{err}
	if all, ok := errors.AsType[*multierror.Error](err); ok {
		list = all.WrappedErrors()
	}
	for _, e := range list {
		if s, ok := errors.AsType[*SurvivorError](e); ok {
			f.Survivors = append(f.Survivors, s.Process)
		}
	}
	return f
}

// error is an error that is what the other side had, as far as errors.Is and errors.As tell.
func (f *failure) error() error {
	if f == nil {
		return nil
	}
	e := &runnerError{text: string(f.Text)}
	var causes []error
	for _, i := range f.Known {
		if i >= 0 && i < len(known) {
			causes = append(causes, known[i])
		}
	}
	if f.Output != nil {
		causes = append(causes, &OutputError{Err: f.Output.error()})
	}
	if f.Errno != 0 {
		causes = append(causes, f.Errno)
	}
	if len(f.Survivors) > 0 {
		causes = append(causes, cannotKill(f.Survivors))
	}
	if f.Errno != 0 && f.Errno.Error() == e.text {
		return f.Errno
	}
	isIt := func(k error) bool { return k.Error() == e.text }
	if i := slices.IndexFunc(known, isIt); i >= 0 {
		return known[i]
	}
	e.cause = errors.Join(causes...)
	if len(causes) == 1 {
		e.cause = causes[0]
	}
	return e
}

// runnerError is an error that a runner has reported.
type runnerError struct {
	text  string
	cause error
}

func (e *runnerError) Error() string { return e.text }
func (e *runnerError) Unwrap() error { return e.cause }
