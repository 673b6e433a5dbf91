package flags

import (
	"errors"

	"github.com/hashicorp/go-multierror"
)

// Join makes one error of all problems that are not nil, one line each; nil if there are none.
func Join(problems ...error) error {
	all := multierror.Append(nil, problems...)
	all.ErrorFormat = func(problems []error) string { return errors.Join(problems...).Error() }
	return all.ErrorOrNil()
}

// Problems are the errors that [Join] or errors.Join made one of.
func Problems(err error) (problems []error) {
	several, ok := err.(interface{ Unwrap() []error })
	if all, is := err.(*multierror.Error); is {
		return all.Errors
	} else if !ok {
		return []error{err}
	}
	for _, err := range several.Unwrap() {
		problems = append(problems, Problems(err)...)
	}
	return problems
}
