package console

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Line knows how what others have written to stderr ends. It is a *wrap.Line.
type Line interface {
	End() (within bool)                        // whether within a line, which the caller then ends
	Wrote(text string)                         // is told what the console has written
	Shows(lines []string, others int) (b bool) // whether with these lines, and at most others more
}

// Follow lets lines begin where what others write to stderr ends, in a line of their own.
func (c *Console) Follow(line Line) { c.line = line }

// Shows tells whether these lines are the last ones on stderr, except for at most others more.
func (c *Console) Shows(lines []string, others int) bool {
	return c.line != nil && c.line.Shows(lines, others)
}

// newLine returns the text to write before a line so that it begins at the left: it ends what a
// worker has written that is no complete line, such as a progress bar. c.mu is held.
func (c *Console) newLine() string {
	within := c.line != nil && c.line.End()
	switch eraser := c.eraser; {
	case eraser != "":
		c.eraser = ""
		return eraser
	case c.above && c.to.Rewrites() && c.to.columns() > 0:
		return c.to.toLeft()
	case within, withinLine(c.file):
		return "\n"
	}
	return ""
}

// WorkersBegin is called before something else than this console writes to the terminal.
func (c *Console) WorkersBegin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.above = true
}

// CompleteLine ends what a worker has written that is no complete line. Lines that another agent
// then writes begin at the left too, because a launcher lets all of them write to the same place.
func (c *Console) CompleteLine() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pass == nil && c.line != nil && c.line.End() {
		io.WriteString(c.out, "\n")
	}
}

// toLeft moves the cursor to the beginning of the next line unless it is at the beginning of one,
// which no program can ask the terminal without taking the user's input. As many spaces as the
// screen has columns move it into the next line from anywhere but the first column, where they fill
// the line: shells do the same before their prompt (PROMPT_SP of zsh). What is below it is erased,
// as zsh does too: a worker that ends while it writes several progress bars leaves the cursor above
// some of them, and lines would stand over their beginnings.
func (d Destination) toLeft() string { return strings.Repeat(" ", d.columns()) + eraseBelow }

// eraseBelow moves the cursor to the beginning of the line, and clears that and all below it.
const eraseBelow = "\r\x1b[J"

// withinLine tells whether a regular file, which anything may have written to, ends within a line
// where f is about to write. If it cannot be read it is taken to end with one.
func withinLine(f *os.File) bool {
	if f == nil {
		return false
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	last := []byte{'\n'}
	_ = raw.Control(func(fd uintptr) { // f.Fd would make f blocking, for all who share it
		var info unix.Stat_t
		if unix.Fstat(int(fd), &info) != nil || info.Mode&unix.S_IFMT != unix.S_IFREG {
			return
		}
		end, err := unix.Seek(int(fd), 0, unix.SEEK_CUR)
		flags, errFlags := unix.FcntlInt(fd, unix.F_GETFL, 0)
		if errFlags == nil && flags&unix.O_APPEND != 0 {
			end = info.Size
		}
		again, errOpen := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil || errOpen != nil {
			return
		}
		defer unix.Close(again)
		if end > 0 {
			_, _ = unix.Pread(again, last, end-1)
		}
	})
	return last[0] != '\n'
}
