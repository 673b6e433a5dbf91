// Package console writes lines to standard error: log lines, and the status line while agents wait
// for each other. It knows where a stream leads, and what can be shown there. What is written is
// decided by others: see packages announce and tables.
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
	to      Destination
	quiet   bool
	verbose bool
	now     func() time.Time // nil before Timed

	mu     sync.Mutex
	status string // the last text of Status
	eraser string // what removes it from the screen, "" if it is not there

	hinting sync.Mutex
	hinted  map[string]bool

	pass func(Record) // gets what would be written; nil for a console that writes itself

	file  *os.File // that out leads to; nil in tests
	line  Line     // nil if nothing is known
	above bool     // workers of this agent have begun, and may have written to the terminal
}

// New returns a console that writes to stderr, which may be a terminal. Writing to a pipe that
// nobody reads blocks for a limited time.
func New(stderr *os.File, s Setting) *Console {
	return &Console{out: newPipeWriter(stderr), to: DestinationOf(stderr, s), file: stderr}
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

// To returns a console for tests, which writes to out.
func To(out io.Writer, to Destination) *Console { return &Console{out: out, to: to} }

// Set chooses what is written: quiet omits Info and Status, verbose adds Verbose.
func (c *Console) Set(quiet, verbose bool) { c.quiet, c.verbose = quiet, verbose }

// Timed says that what follows is about a running job: unless it goes to a terminal, lines have the
// time that now returns. nil is no time.
func (c *Console) Timed(now func() time.Time) { c.now = now }

// at is the time in front of a line, "" if it has none.
func (c *Console) at() string {
	if c.now == nil {
		return ""
	}
	return c.to.stamp(c.now())
}

// Terminal tells whether the console writes to a terminal.
func (c *Console) Terminal() bool { return c.to.IsTerminal() }

// Rewrites tells whether Status replaces the line before.
func (c *Console) Rewrites() bool { return c.to.Rewrites() }

// Error writes what failed.
func (c *Console) Error(format string, args ...any) {
	c.write(asError, c.at(), fmt.Sprintf(format, args...))
}

// Warn writes something that the user should know, even with -q.
func (c *Console) Warn(format string, args ...any) {
	c.write(asLine, c.at(), fmt.Sprintf(format, args...))
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
		c.write(asHint, "", text)
	}
}

// Table writes a line and below it a table, indented; -q omits both.
func (c *Console) Table(title, table string) {
	var b strings.Builder
	b.WriteString(title + "\n")
	for line := range strings.Lines(table) {
		if line != "\n" {
			line = "  " + line
		}
		b.WriteString(line)
	}
	c.Info("%s", b.String())
}

// Command writes a command that the user can copy as a whole line, without anything before it; -q
// omits it.
func (c *Console) Command(line string) {
	if !c.quiet {
		c.write(asCommand, "", line)
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

// Status writes what is being waited for, and for how long. On a terminal it is one line, which the
// next call replaces, any other line erases, and EndStatus removes; elsewhere it is a plain line,
// written only when it changes.
func (c *Console) Status(what string, waited time.Duration) {
	if c.quiet {
		return
	}
	if c.pass != nil {
		c.pass(Record{asStatus, what, waited})
		return
	}
	what = visible.Line(what)
	end := fmt.Sprintf(" (%v)", waited.Round(time.Second))
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.to.Rewrites():
		io.WriteString(c.out, cmp.Or(c.newLine(), erase)+c.to.fit("rdzv: "+what, end))
		c.eraser = erase
	case what+end != c.status:
		c.put(c.newLine(), "rdzv: "+c.at()+what+end+"\n")
	}
	c.status = what + end
}

// EndStatus removes the status line. It must be called before a worker writes to the terminal.
func (c *Console) EndStatus() {
	if c.pass != nil {
		c.pass(Record{Kind: endStatus})
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	io.WriteString(c.out, c.eraser)
	c.status, c.eraser = "", ""
}

// lead is what each line of a text begins with: a label in a colour, after something else.
type lead struct {
	before string
	colour Colour
	label  string
}

// further is before what a terminal shows of a line on further rows.
const further = "rdzv:   "

// write writes each line of a text. The first line has a time; "" is none.
func (c *Console) write(kind RecordKind, at, text string) {
	if c.pass != nil {
		c.pass(Record{Kind: kind, Text: text})
		return
	}
	l := kind.lead()
	first, columns := "", 0
	if l.label != "" {
		first = l.before + c.to.Paint(l.colour, l.label) + " "
		columns = len(l.before + l.label + " ")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for line := range strings.Lines(text) {
		before := first
		for _, part := range c.to.fold(at+visible.Text(strings.TrimRight(line, "\n")), columns) {
			b.WriteString(before + part + "\n")
			before = further
		}
		at = ""
	}
	c.put(c.newLine(), b.String())
}

// put writes lines with one call, after what ends or erases the line before. c.mu is held.
func (c *Console) put(before, lines string) {
	io.WriteString(c.out, before+lines) // there is nowhere to report a failure
	if c.line != nil {
		c.line.Wrote(lines)
	}
}
