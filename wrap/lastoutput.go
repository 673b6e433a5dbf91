package wrap

import (
	"sync"
	"time"

	"rdzv/wrap/internal/tee"
)

// LastOutput is when a worker has last written something, and the last traceback that it has
// written. The zero value is ready to use.
type LastOutput struct {
	mu     sync.Mutex
	source outputSource  // nil if nothing is known
	in     *OutputMemory // where Run notes it too; nil is nowhere
}

// OutputMemory is memory that processes share in which one of them keeps the end of what a worker
// writes. It consists of numbers and bytes; the zero value is ready to use.
type OutputMemory = tee.Memory

type outputSource interface {
	LastWrite() int64 // in Unix nanoseconds, 0 if nothing was written
	Traceback() (text []byte, at int64)
}

// written is the time of an output that ends.
type written int64

func (w written) LastWrite() int64         { return int64(w) }
func (written) Traceback() ([]byte, int64) { return nil, 0 }

// LastOutputIn returns one that Run also notes in *in, which must remain valid even after Run has
// returned.
func LastOutputIn(in *OutputMemory) *LastOutput { return &LastOutput{in: in} }

// Follow makes l what another process notes in *in.
func (l *LastOutput) Follow(in *OutputMemory) { l.setSource(in) }

// Keep ends Follow: the time does not change any more, and there is no traceback.
func (l *LastOutput) Keep() {
	if l != nil {
		l.setSource(written(l.nanoseconds()))
	}
}

// Time returns the time, which is zero if the worker has written nothing or that is not known.
func (l *LastOutput) Time() time.Time {
	if at := l.nanoseconds(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
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

func (l *LastOutput) nanoseconds() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.source == nil {
		return 0
	}
	return l.source.LastWrite()
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
