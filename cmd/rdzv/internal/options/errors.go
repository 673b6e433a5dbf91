package options

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"rdzv/cmd/rdzv/internal/flagname"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/rdzv/agent"
)

// command is the name of a command, for errors about its flags.
type command string

// inFlags returns the errors of agent.Config.Validate with flags in place of the fields.
func (c command) inFlags(err error) error {
	if err == nil {
		return nil
	}
	var problems []error
	for _, err := range flags.Problems(err) {
		bad, isBad := errors.AsType[*agent.SettingError](err)
		two, areTwo := errors.AsType[*agent.ExclusiveError](err)
		switch {
		case isBad:
			flag := strings.TrimRight(flagname.Of(bad.Field)+" "+bad.Value, " ")
			err = fmt.Errorf("cannot run %s: %s: %s", c, flag, flagname.In(bad.Reason))
		case areTwo:
			err = c.exclusive(true, flagname.Of(two.A)[2:], flagname.Of(two.B)[2:])
		}
		problems = append(problems, err)
	}
	return flags.Join(problems...)
}

// reject is the error of one flag, nil unless its value is bad.
func (c command) reject(bad bool, flag string, value any, why string) error {
	if !bad {
		return nil
	}
	if text, ok := value.(string); ok {
		value = strconv.Quote(text)
	}
	return fmt.Errorf("cannot run %s: --%s %v: %s", c, flag, value, why)
}

// exclusive is the error of two flags, or their variables, nil unless both are given.
func (c command) exclusive(both bool, a, b string) error {
	if !both {
		return nil
	}
	return fmt.Errorf("cannot run %s: --%s and --%s (or %s, %s) exclude each other",
		c, a, b, flags.Variable(strings.Fields(a)[0]), flags.Variable(strings.Fields(b)[0]))
}
