package main

import (
	"strings"

	"github.com/hashicorp/go-multierror"
)

// join makes one error of all problems that are not nil, one line each; nil if there are none.
func join(problems []error) error {
	all := multierror.Append(nil, problems...)
	all.ErrorFormat = func(problems []error) string {
		lines := make([]string, 0, len(problems))
		for _, p := range problems {
			lines = append(lines, p.Error())
		}
		return strings.Join(lines, "\n")
	}
	return all.ErrorOrNil()
}
