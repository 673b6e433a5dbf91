package wrap

import (
	"slices"
	"strings"
	"sync"

	"rdzv/wrap/internal/tee"
)

// Line knows how what workers have written to their standard error ends, as far as Run copies it:
// whether within a line, as a progress bar does, and with which lines. The zero value is ready to
// use, and is shared by all that write to the same file, one after another.
type Line struct {
	mu     sync.Mutex
	within bool
	tails  []tee.Tail // which know that of what Run copies
	copied []byte     // the end of what was captured, and of what Wrote was told
	ends   []shownEnd // of the other streams that Run has copied
}

// shownEnd is the end of a stream, and how many lines there were where it is shown after it.
type shownEnd struct {
	text  []byte
	lines int64
}

// End reports whether it ends within a line, and takes the line for ended: the caller is about
// to do that.
func (l *Line) End() (within bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	within, l.within = l.within, false
	for _, t := range l.tails {
		within = t.EndLine() || within
	}
	return within
}

// Wrote records lines that the caller has written to the same file.
func (l *Line) Wrote(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add([]byte(text))
}

// add appends to copied. mu is held.
func (l *Line) add(b []byte) {
	b = b[max(0, len(b)-tee.TailSize):]
	if l.copied = append(l.copied, b...); len(l.copied) > 2*tee.TailSize {
		l.copied = append(l.copied[:0], l.copied[len(l.copied)-tee.TailSize:]...)
	}
}

// Shows reports whether the file ends with these lines and at most so many others after them, as
// far as it was captured or told, or Run has returned. Empty lines do not
// count, and a line may have more at its beginning, such as a former state of a progress bar.
func (l *Line) Shows(lines []string, others int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := int64(0)
	for _, end := range l.ends {
		last = max(last, end.lines)
	}
	for _, end := range l.ends {
		if room := others - int(last-end.lines); room >= 0 && endsWith(end.text, lines, room) {
			return true
		}
	}
	return endsWith(l.copied, lines, others)
}

// endsWith tells whether a text ends with these lines and at most so many others.
func endsWith(text []byte, lines []string, others int) bool {
	wanted, got := filled(lines), filled(strings.Split(string(text), "\n"))
	for after := range others + 1 {
		at := len(got) - after - len(wanted)
		if at < 0 || len(wanted) == 0 {
			return false
		}
		if slices.EqualFunc(got[at:at+len(wanted)], wanted, strings.HasSuffix) {
			return true
		}
	}
	return false
}

// filled are the lines that are not empty, without white space at their ends.
func filled(lines []string) (list []string) {
	for _, line := range lines {
		if line = strings.TrimRight(line, " \t\r"); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// wrote records what was captured.
func (l *Line) wrote(b []byte) {
	if l != nil && len(b) > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.within = b[len(b)-1] != '\n'
		l.add(b)
	}
}

func (l *Line) follow(t tee.Tail) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tails = append(l.tails, t)
	}
}

// release is called before the first of its tails is closed.
func (l *Line) release() {
	if l != nil {
		within := l.End()
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.tails) > 0 { // of another Run
			l.ends = nil
		}
		for _, t := range l.tails {
			if t.Lines() == 0 { // not shown
				continue
			}
			l.ends = append(l.ends, shownEnd{t.Bytes(), t.Lines()})
		}
		l.within, l.tails = within, nil
	}
}
