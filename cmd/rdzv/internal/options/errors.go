package options

import (
	"errors"
	"fmt"
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/rdzv/agent"
)

// command is the name of a command, for errors about its flags.
type command string

// ofConfig returns the errors of agent.Config.Validate as those of the command line.
func (c command) ofConfig(err error) error {
	if err == nil {
		return nil
	}
	var problems []error
	for _, err := range flags.Problems(err) {
		bad, isBad := errors.AsType[*agent.SettingError](err)
		two, areTwo := errors.AsType[*agent.ExclusiveError](err)
		switch {
		case isBad:
			err = fmt.Errorf("cannot run %s: %w", c, bad)
		case areTwo:
			err = c.exclusive(true, two.A[2:], two.B[2:])
		}
		problems = append(problems, err)
	}
	return flags.Join(problems...)
}

// exclusive is the error of two flags, or their variables, nil unless both are given.
func (c command) exclusive(both bool, a, b string) error {
	if !both {
		return nil
	}
	return fmt.Errorf("cannot run %s: --%s and --%s (or %s, %s) exclude each other",
		c, a, b, flags.Variable(strings.Fields(a)[0]), flags.Variable(strings.Fields(b)[0]))
}
