package main

import (
	"strings"

	"github.com/hashicorp/go-multierror"
)

// together makes one error of all problems that are not nil, a line each; nil if
// there are none.
func together(problems []error) error {
	all := multierror.Append(nil, problems...)
	all.ErrorFormat = aLineEach
	return all.ErrorOrNil()
}

func aLineEach(problems []error) string {
	lines := make([]string, 0, len(problems))
	for _, p := range problems {
		lines = append(lines, p.Error())
	}
	return strings.Join(lines, "\n")
}
