package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"rdzv/envmap"
	"rdzv/rdzv/meet"
)

// say is all that rdzv ever writes to standard error. The rules:
//
//   - every line begins with "rdzv: ", what to try with "rdzv: hint: ";
//   - lower case, no period; values are quoted; a duration names its flag;
//   - a mistake is one line that names the value, and a hint where there is
//     something to try;
//   - success is silent;
//   - a text is written with one call, so that the lines of several agents on one
//     terminal do not tear each other apart;
//   - colour is for a terminal, and there for the words "rdzv:" before a failure
//     and "hint:" alone.
//
// It may be used by several goroutines at once.
type say struct {
	out     io.Writer
	screen  screen
	quiet   bool // only what ends the job
	verbose bool // also what goes well

	mu       sync.Mutex
	last     string // the last text of waiting
	standing bool   // it stands on the screen, without a newline
}

func newSay(out io.Writer, s screen) *say { return &say{out: out, screen: s} }

// line says something that the user should know, whatever happens next.
func (s *say) line(format string, args ...any) {
	s.write("rdzv: ", fmt.Sprintf(format, args...))
}

// bad says what has failed.
func (s *say) bad(format string, args ...any) {
	s.write(s.screen.red("rdzv:")+" ", fmt.Sprintf(format, args...))
}

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

func (s *say) hint(text string) { s.write("rdzv: "+s.screen.yellow("hint:")+" ", text) }

// waiting says what is being waited for. On a terminal it is one line, which the
// next call renews, which any other line erases, and which waited takes away;
// elsewhere it is a plain line, said once.
func (s *say) waiting(format string, args ...any) {
	if s.quiet {
		return
	}
	text := fmt.Sprintf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.screen.renews:
		io.WriteString(s.out, erase+s.screen.fit("rdzv: "+text))
		s.standing = true
	case text != s.last:
		io.WriteString(s.out, "rdzv: "+text+"\n")
	}
	s.last = text
}

// waited ends waiting. It is to be called before a worker writes to the terminal.
func (s *say) waited() {
	s.mu.Lock()
	defer s.mu.Unlock()
	io.WriteString(s.out, s.erased())
	s.last = ""
}

// erased is what to write before anything else.
func (s *say) erased() string {
	if !s.standing {
		return ""
	}
	s.standing = false
	return erase
}

func (s *say) write(prefix, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	b.WriteString(s.erased())
	for line := range strings.Lines(text) {
		b.WriteString(prefix + strings.TrimRight(line, "\n") + "\n")
	}
	io.WriteString(s.out, b.String()) // nobody is left to tell if this fails
}

// fail says an error, with its hint if it has one, and returns the code.
func (s *say) fail(code int, err error) int {
	s.bad("%v", err)
	if hint := hintOf(err); hint != "" {
		s.hint(hint)
	}
	return code
}

// usage says what is wrong with the command line, and returns the code.
func (s *say) usage(code int, err error, command string) int {
	s.bad("%v", err)
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
	var none *meet.NotFoundError
	if errors.As(err, &none) {
		return none.Hint
	}
	var e *envmap.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}
