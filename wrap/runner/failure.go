package runner

import (
	"errors"
	"slices"
	"syscall"

	"github.com/hashicorp/go-multierror"

	"rdzv/wrap"
)

// failure is an error of package wrap, for the other side of the connection.
type failure struct {
	Text      text
	Errno     syscall.Errno  `json:",omitempty"`
	Known     []int          `json:",omitempty"` // indices of known
	Output    *failure       `json:",omitempty"` // the reason of a wrap.OutputError
	Survivors []wrap.Process `json:",omitempty"`
}

// known are errors that callers compare.
var known = []error{wrap.ErrHolder, wrap.ErrLeaseOver, wrap.ErrLogBlocked, wrap.ErrNotRead}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: text(err.Error())}
	f.Errno, _ = errors.AsType[syscall.Errno](err)
	for i, e := range known {
		if errors.Is(err, e) {
			f.Known = append(f.Known, i)
		}
	}
	if e, ok := errors.AsType[*wrap.OutputError](err); ok {
		f.Output = failureOf(e.Err)
	}
	list := []error{err}
	if all, ok := errors.AsType[*multierror.Error](err); ok {
		list = all.WrappedErrors()
	}
	for _, e := range list {
		if s, ok := errors.AsType[*wrap.SurvivorError](e); ok {
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
	e := &remoteError{text: string(f.Text)}
	for _, i := range f.Known {
		if i >= 0 && i < len(known) {
			e.causes = append(e.causes, known[i])
		}
	}
	if f.Output != nil {
		e.causes = append(e.causes, &wrap.OutputError{Err: f.Output.error()})
	}
	if f.Errno != 0 {
		e.causes = append(e.causes, f.Errno)
	}
	if len(f.Survivors) > 0 {
		all := &multierror.Error{}
		for _, p := range f.Survivors {
			all = multierror.Append(all, &wrap.SurvivorError{Process: p})
		}
		e.causes = append(e.causes, all)
	}
	isIt := func(k error) bool { return k.Error() == e.text }
	if i := slices.IndexFunc(known, isIt); i >= 0 {
		return known[i] // as wrap itself returns it
	}
	return e
}

// remoteError is an error from the other side.
type remoteError struct {
	text   string
	causes []error
}

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Unwrap() []error { return e.causes }
