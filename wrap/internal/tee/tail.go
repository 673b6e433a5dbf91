package tee

import (
	"sync"
	"sync/atomic"
	"time"
)

// TailSize is how many bytes at the end of a stream a Tail keeps.
const TailSize = 64 << 10

// Tail keeps the end of a stream, and what has been shown of it. Copies of a Tail keep the same.
// The zero value keeps nothing. Its methods are safe for concurrent use: a stream may still be
// copied when nobody waits for its end any more.
type Tail struct{ kept *kept }

type kept struct {
	mu     sync.Mutex
	memory []byte // byte n of the stream at n modulo TailSize
	length uint64 // of the stream
	last   *int64 // when the last byte was written, in Unix nanoseconds, by sync/atomic
	within bool   // what is shown of the stream ends within a line
	lines  int64  // how many lines had been shown there then, also of other streams
}

// NewTail returns an empty Tail. It notes the time of the last write in *last, which may be memory
// that processes share; nil is memory of its own.
func NewTail(last *int64) Tail {
	if last == nil {
		last = new(int64)
	}
	return Tail{&kept{memory: make([]byte, TailSize), last: last}}
}

// setShown records whether what has been shown ends within a line, and how many lines there are.
func (t Tail) setShown(line bool, lines int64) {
	if t.kept == nil {
		return
	}
	t.kept.mu.Lock()
	defer t.kept.mu.Unlock()
	t.kept.within, t.kept.lines = line, lines
}

// Lines is how many lines there were where the stream is shown when the last part of it was.
func (t Tail) Lines() int64 {
	t.kept.mu.Lock()
	defer t.kept.mu.Unlock()
	return t.kept.lines
}

// EndLine reports whether what has been shown ends within a line, which the caller then ends.
func (t Tail) EndLine() (within bool) {
	t.kept.mu.Lock()
	defer t.kept.mu.Unlock()
	within, t.kept.within = t.kept.within, false
	return within
}

// Write appends b.
func (t Tail) Write(b []byte) {
	if t.kept == nil {
		return
	}
	k := t.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	k.length += uint64(len(b))
	atomic.StoreInt64(k.last, time.Now().UnixNano())
	b = b[max(0, len(b)-TailSize):]
	at := (k.length - uint64(len(b))) % TailSize
	copied := copy(k.memory[at:], b)
	copy(k.memory, b[copied:])
}

// LastWrite is when something was last written, in Unix nanoseconds; 0 if nothing was.
func (t Tail) LastWrite() int64 { return atomic.LoadInt64(t.kept.last) }

// Bytes returns a copy of what is kept.
func (t Tail) Bytes() []byte {
	k := t.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.length <= TailSize {
		return append([]byte(nil), k.memory[:k.length]...)
	}
	at := k.length % TailSize
	return append(append([]byte(nil), k.memory[at:]...), k.memory[:at]...)
}
