package wrap

import (
	"sync"
	"time"
)

// LastOutput is when a worker has first and last written something, its last line, and the last
// traceback that it has written, as the runner reports: within 0.3 s. The zero value is ready to
// use.
type LastOutput struct {
	mu  sync.Mutex
	now outputMessage
	all bool
}

// Time returns the last time, which is zero if the worker has written nothing or that is not known.
func (l *LastOutput) Time() time.Time { return atTime(l.get().Last) }

// First is Time of what the worker has written first.
func (l *LastOutput) First() time.Time { return atTime(l.get().First) }

// Line is the last line that is not blank, complete or not, of the last KiB; "" if there is none.
func (l *LastOutput) Line() string { return string(l.get().Line) }

// Traceback returns what a worker that runs has written since the beginning of the last traceback
// of Python, at least in the 2 s after it, and when that was; nil if there is none in the last
// 64 KiB.
func (l *LastOutput) Traceback() (text []byte, at time.Time) {
	now := l.get()
	return now.Traceback, atTime(now.TracedAt)
}

// All reports whether everything that the worker writes to stdout and stderr is read, as is known
// when it has started: then a zero Time means that it has written nothing.
func (l *LastOutput) All() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

func atTime(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}

func (l *LastOutput) get() outputMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// begin notes whether everything is read.
func (l *LastOutput) begin(all bool) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = all
	}
}

func (l *LastOutput) set(m outputMessage) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Traceback == nil && m.TracedAt == l.now.TracedAt {
		m.Traceback = l.now.Traceback
	}
	l.now = m
}

// end forgets the traceback of a worker that has ended.
func (l *LastOutput) end() {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.now.Traceback, l.now.TracedAt = nil, 0
	}
}
