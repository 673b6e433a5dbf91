package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"rdzv/envmap"
)

// say is all that rdzv ever writes to standard error. The rules:
//
//   - every line begins with "rdzv: ", what to try with "rdzv: hint: ";
//   - lower case, no period; values are quoted; a duration names its flag;
//   - a mistake is one line that names the value, and a hint where there is
//     something to try;
//   - success is silent;
//   - a text is written with one call, so that the lines of several agents on one
//     terminal do not tear each other apart.
type say struct {
	out     io.Writer
	quiet   bool // only what ends the job
	verbose bool // also what goes well
}

func newSay(out io.Writer) *say { return &say{out: out} }

// line says something that the user should know, whatever happens next.
func (s *say) line(format string, args ...any) { s.write("", fmt.Sprintf(format, args...)) }

// news says something that can be done without (-q).
func (s *say) news(format string, args ...any) {
	if !s.quiet {
		s.line(format, args...)
	}
}

// detail says what only somebody who looks for it wants to know (-v).
func (s *say) detail(format string, args ...any) {
	if s.verbose {
		s.line(format, args...)
	}
}

func (s *say) hint(text string) { s.write("hint: ", text) }

func (s *say) write(prefix, text string) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("rdzv: " + prefix + strings.TrimRight(line, "\n") + "\n")
	}
	io.WriteString(s.out, b.String()) // nobody is left to tell if this fails
}

// fail says an error, with its hint if it has one, and returns the code.
func (s *say) fail(code int, err error) int {
	s.line("%v", err)
	if hint := hintOf(err); hint != "" {
		s.hint(hint)
	}
	return code
}

// usage says what is wrong with the command line, and returns the code.
func (s *say) usage(code int, err error, command string) int {
	s.line("%v", err)
	hint := hintOf(err)
	if hint == "" {
		hint = strings.TrimSpace("rdzv help " + command)
	}
	s.hint(hint)
	return code
}

// advice is an error with something to try.
type advice struct {
	error
	hint string
}

func (a advice) Hint() string  { return a.hint }
func (a advice) Unwrap() error { return a.error }

func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	var e *envmap.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}
