// Package console writes lines to standard error: log lines, and the status line while agents wait
// for each other. It knows what a screen can show. What is written is decided by others: see
// packages announce and tables.
package console

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"rdzv/cmd/rdzv/internal/visible"
	"rdzv/rdzv/agent"
)

// Console writes lines for people. The rules:
//
//   - every line but a command to be copied begins with "rdzv: ", a suggestion with "rdzv: hint: ",
//     and where a line begins, also after output of a worker that is no complete line (newline.go);
//   - lower case, no period; values are quoted; a duration names its flag;
//   - an error is one line that names the value, and a hint if there is something to try;
//   - success is silent;
//   - on a terminal a line is divided between words where it ends, and the rest is indented; not if
//     it has a command or what a worker has written, which remain as they are;
//   - a line about a running job begins with its time if stderr is not a terminal (Timed): "rdzv:
//     2026-11-28T14:03:07Z "; hints and the further lines of a text have none;
//   - text from outside is made visible: it cannot control the terminal;
//   - a text is written with one call, so that lines of several agents on one terminal are not
//     interleaved;
//   - colour is for terminals, and there for "rdzv:" before an error and "hint:" alone.
//
// It may be used by several goroutines at once.
type Console struct {
	out     io.Writer
	screen  Screen
	quiet   bool
	verbose bool
	now     func() time.Time // nil before Timed

	mu     sync.Mutex
	status string // the last text of Status
	eraser string // what removes it from the screen, "" if it is not there

	hinting sync.Mutex
	hinted  map[string]bool

	file  *os.File // that out leads to; nil in tests
	line  Line     // nil if nothing is known
	above bool     // workers of this agent have begun, and may have written to the terminal
}

// New returns a console that writes to stderr, which may be a terminal. Writing to a pipe that
// nobody reads blocks for a limited time.
func New(stderr *os.File, s Setting) *Console {
	return &Console{out: newPipeWriter(stderr), screen: ScreenOf(stderr, s), file: stderr}
}

// At is this console if stderr is nil, or else one with the same settings for stderr of another
// process.
func (c *Console) At(stderr *os.File) *Console {
	if stderr == nil {
		return c
	}
	return &Console{
		out: newPipeWriter(stderr), quiet: c.quiet, verbose: c.verbose, now: c.now, file: stderr,
	}
}

// To returns a console for tests: it writes to out, and rewrites lines as on a terminal or not.
func To(out io.Writer, rewrites bool) *Console {
	return &Console{out: out, screen: Screen{rewrites: rewrites}}
}

// Set chooses what is written: quiet omits Info and Status, verbose adds Verbose.
func (c *Console) Set(quiet, verbose bool) { c.quiet, c.verbose = quiet, verbose }

// Timed says that what follows is about a running job: unless it goes to a terminal, lines have the
// time that now returns. nil is no time.
func (c *Console) Timed(now func() time.Time) { c.now = now }

// timeFormat is RFC 3339 in UTC, which log files can be sorted by.
const timeFormat = "2006-01-02T15:04:05Z "

// at is the time in front of a line, "" if it has none.
func (c *Console) at() string {
	if c.now == nil || c.screen.terminal {
		return ""
	}
	return c.now().UTC().Format(timeFormat)
}

// Terminal tells whether the console writes to a terminal.
func (c *Console) Terminal() bool { return c.screen.terminal }

// Rewrites tells whether Status replaces the line before.
func (c *Console) Rewrites() bool { return c.screen.rewrites }

// Error writes what failed.
func (c *Console) Error(format string, args ...any) {
	c.write("rdzv: ", Red, "rdzv:", c.at(), fmt.Sprintf(format, args...))
}

// Warn writes something that the user should know, even with -q.
func (c *Console) Warn(format string, args ...any) {
	c.write("rdzv: ", "", "", c.at(), fmt.Sprintf(format, args...))
}

// Info writes something that -q omits.
func (c *Console) Info(format string, args ...any) {
	if !c.quiet {
		c.Warn(format, args...)
	}
}

// Verbose writes something that only -v shows.
func (c *Console) Verbose(format string, args ...any) {
	if c.verbose {
		c.Warn(format, args...)
	}
}

// Hint writes a suggestion, with flags in place of fields; an empty one is not written.
func (c *Console) Hint(text string) {
	if text != "" {
		c.write("rdzv: hint: ", Magenta, "hint:", "", text)
	}
}

// Command writes a command that the user can copy as a whole line, without anything before it; -q
// omits it.
func (c *Console) Command(line string) {
	if !c.quiet {
		c.write("", "", "", "", line)
	}
}

// HintOnce writes a suggestion unless it was written before.
func (c *Console) HintOnce(text string) {
	c.hinting.Lock()
	defer c.hinting.Unlock()
	if c.hinted == nil {
		c.hinted = map[string]bool{}
	}
	if !c.hinted[text] {
		c.Hint(text)
	}
	c.hinted[text] = true
}

// Suggest writes a suggestion that -q omits, once.
func (c *Console) Suggest(text string) {
	if !c.quiet {
		c.HintOnce(text)
	}
}

// Fail writes an error and its hint, if it has one, with flags in place of fields.
func (c *Console) Fail(err error) {
	c.Error("%s", err.Error())
	c.HintOnce(agent.Hint(err))
}

// Status writes what is being waited for. On a terminal it is one line, which the next call
// replaces, any other line erases, and EndStatus removes; elsewhere it is a plain line, written
// only when it changes.
func (c *Console) Status(format string, args ...any) {
	if c.quiet {
		return
	}
	text := visible.Line(fmt.Sprintf(format, args...))
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.screen.rewrites:
		io.WriteString(c.out, cmp.Or(c.newLine(), erase)+c.screen.fit("rdzv: "+text))
		c.eraser = erase
	case text != c.status:
		line := "rdzv: " + c.at() + text + "\n"
		io.WriteString(c.out, c.newLine()+line)
		if c.line != nil {
			c.line.Wrote(line)
		}
	}
	c.status = text
}

// EndStatus removes the status line. It must be called before a worker writes to the terminal.
func (c *Console) EndStatus() {
	c.mu.Lock()
	defer c.mu.Unlock()
	io.WriteString(c.out, c.eraser)
	c.status, c.eraser = "", ""
}

// write writes each line of a text after a prefix, of which a label may have a colour. The first
// line has a time; "" is none.
func (c *Console) write(prefix, colour, label, at, text string) {
	shown := prefix
	if label != "" {
		shown = strings.Replace(prefix, label, c.screen.coloured(colour, label), 1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	b.WriteString(c.newLine())
	for line := range strings.Lines(text) {
		text := at + visible.Text(strings.TrimRight(line, "\n"))
		for i, part := range c.screen.fold(text, len(prefix)) {
			if i > 0 {
				part = "rdzv:   " + part
			} else {
				part = shown + part
			}
			b.WriteString(part + "\n")
		}
		at = ""
	}
	io.WriteString(c.out, b.String()) // there is nowhere to report a failure
	if c.line != nil {
		c.line.Wrote(b.String())
	}
}
