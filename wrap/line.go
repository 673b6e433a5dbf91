package wrap

import (
	"slices"
	"strings"
	"sync"

	"rdzv/internal/colours"
)

// Line knows how what workers have written to their standard error ends, as far as it is copied:
// whether within a line, as a progress bar does, and with which lines. The zero value is ready to
// use, and is shared by all that write to the same file, one after another.
type Line struct {
	mu     sync.Mutex
	within bool
	runs   map[*call]map[int]int64 // that copy to it: when each worker was last known to have written
	ended  []shownEnd
	before int64 // how many lines former calls have shown
	shown  int64 // how many lines have been shown
	own    int64 // how many lines the caller has written
}

// shownEnd is the end of what a worker has written, and how many lines there were then.
type shownEnd struct {
	call       *call
	worker     int
	text       []byte
	lines, own int64
}

// End reports whether it ends within a line, and takes the line for ended: the caller is about
// to do that.
func (l *Line) End() (within bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	within, l.within = l.within, false
	return within
}

// Wrote records lines that the caller has written to the same file.
func (l *Line) Wrote(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.own += int64(len(filled(strings.Split(text, "\n"))))
}

// Shows reports whether the end of what a worker has written, as far as it is copied, was these
// lines and at most so many others after them, also of other workers or of the caller. Empty lines
// at the end of what the worker has written do not count, and a line may have more at its
// beginning, such as a former state of a progress bar.
func (l *Line) Shows(lines []string, others int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.ended, func(e shownEnd) bool {
		room := others - int(l.shown-e.lines) - int(l.own-e.own)
		return room >= 0 && endsWith(e.text, lines, room)
	})
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

// filled are the lines that are not empty, without white space at their ends, and without escape
// sequences.
func filled(lines []string) (list []string) {
	for _, line := range lines {
		if line = strings.TrimRight(colours.WithoutEscapes(line), " \t\r"); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// follow makes it learn what the workers of a call write.
func (l *Line) follow(c *call) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs[c] != nil {
		return
	}
	if l.runs == nil {
		l.runs = map[*call]map[int]int64{}
	}
	if len(l.runs) == 0 {
		l.before = l.shown
	}
	l.runs[c] = map[int]int64{}
}

// leave ends follow.
func (l *Line) leave(c *call) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.runs, c)
	}
}

// set takes over what a runner has reported of a worker of a call.
func (l *Line) set(c *call, m outputMessage) {
	if l == nil || m.Lines == 0 && !m.Within { // nothing was shown
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs[c] == nil {
		return
	}
	if m.Last != l.runs[c][m.Worker] || !m.Within { // else the caller may have ended the line
		l.within = m.Within
	}
	l.runs[c][m.Worker], l.shown = m.Last, max(l.shown, l.before+m.Lines)
}

// end notes with what a worker has ended.
func (l *Line) end(c *call, m outputMessage, text []byte) {
	if l == nil || m.Lines == 0 && !m.Within { // nothing was shown
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = slices.DeleteFunc(l.ended, func(e shownEnd) bool {
		return e.call == c && e.worker == m.Worker
	})
	l.ended = append(l.ended, shownEnd{c, m.Worker, text, l.before + m.Lines, l.own})
	const most = 1000 // 64 KiB each
	l.ended = l.ended[max(0, len(l.ended)-most):]
}
