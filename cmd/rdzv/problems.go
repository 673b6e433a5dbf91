package main

import "errors"

// together makes one error of all problems that are not nil, a line each; nil if
// there are none.
func together(problems []error) error { return errors.Join(problems...) }
