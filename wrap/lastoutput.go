package wrap

import (
	"sync"
	"time"

	"rdzv/wrap/internal/tee"
)

// LastOutput is when a worker has first and last written something, its last line, and the last
// traceback that it has written. The zero value is ready to use.
type LastOutput struct {
	mu     sync.Mutex
	source outputSource  // nil if nothing is known
	in     *OutputMemory // where Run notes it too; nil is nowhere
}

// OutputMemory is memory that processes share in which one of them keeps the end of what a worker
// writes. It consists of numbers and bytes; the zero value is ready to use.
type OutputMemory = tee.Memory

type outputSource interface {
	FirstWrite() int64 // in Unix nanoseconds, 0 if nothing was written
	LastWrite() int64
	LastLine() string
	Traceback() (text []byte, at int64)
}

// written is what remains known of an output that has ended.
type written struct {
	first, last int64
	line        string
}

func writtenOf(s outputSource) written {
	return written{s.FirstWrite(), s.LastWrite(), s.LastLine()}
}

func (w written) FirstWrite() int64        { return w.first }
func (w written) LastWrite() int64         { return w.last }
func (w written) LastLine() string         { return w.line }
func (written) Traceback() ([]byte, int64) { return nil, 0 }

// LastOutputIn returns one that Run also notes in *in, which must remain valid even after Run has
// returned.
func LastOutputIn(in *OutputMemory) *LastOutput { return &LastOutput{in: in} }

// Follow makes l what another process notes in *in.
func (l *LastOutput) Follow(in *OutputMemory) { l.setSource(in) }

// Keep ends Follow: times and line do not change any more, and there is no traceback.
func (l *LastOutput) Keep() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.source != nil {
		l.source = writtenOf(l.source)
	}
}

// Time returns the last time, which is zero if the worker has written nothing or that is not known.
func (l *LastOutput) Time() time.Time { return l.time(outputSource.LastWrite) }

// First is Time of what the worker has written first.
func (l *LastOutput) First() time.Time { return l.time(outputSource.FirstWrite) }

func (l *LastOutput) time(of func(outputSource) int64) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.source == nil || of(l.source) == 0 {
		return time.Time{}
	}
	return time.Unix(0, of(l.source))
}

// Line is the last line that is not blank, complete or not, of the last KiB; "" if there is none.
func (l *LastOutput) Line() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.source == nil {
		return ""
	}
	return l.source.LastLine()
}

// Traceback returns what a worker that runs has written since the beginning of the last traceback
// of Python, and when that was; nil if there is none in the last 64 KiB.
func (l *LastOutput) Traceback() (text []byte, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.source == nil {
		return nil, time.Time{}
	}
	text, nanoseconds := l.source.Traceback()
	return text, time.Unix(0, nanoseconds)
}

func (l *LastOutput) setSource(s outputSource) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.source = s
	}
}

// memory is where Run notes it too.
func (l *LastOutput) memory() *OutputMemory {
	if l == nil {
		return nil
	}
	return l.in
}
