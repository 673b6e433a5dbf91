package tee

import (
	"bytes"
	"sync"
	"time"
)

// TailSize is how many bytes at the end of a stream a Tail keeps.
const TailSize = 64 << 10

// Tail keeps the end of what a worker writes to one stream, and what is known of all its streams.
// Its methods are safe for concurrent use: a stream may still be copied when nobody waits for its
// end any more. A nil Tail keeps nothing.
type Tail struct {
	changed func()

	mu     sync.Mutex
	told   State // see Told
	fresh  bool  // changed has not been called since
	memory memory
	edge   []byte // the last bytes of the stream, in which a traceback may begin
	other  []byte // the last bytes of another stream of the worker
	now    State
}

// State is what is known of the output of a worker.
type State struct {
	First, Last int64  // when something was written, in Unix nanoseconds; 0 if nothing was
	Line        []byte // the last line that is not blank, complete or not, of the last KiB
	TracedAt    int64  // when the last traceback was written, in Unix nanoseconds; 0 if none was
	Within      bool   // what has been shown ends within a line
	Lines       int64  // how many lines had been shown at the same place then
}

// NewTail returns an empty Tail, which calls changed when its State has changed, and again if
// Within is another one then.
func NewTail(changed func()) *Tail { return &Tail{changed: changed, fresh: true} }

// Told returns the State, and that of the call before.
func (t *Tail) Told() (now, before State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before = t.told
	t.told, t.fresh = t.now, true
	return t.now, before
}

// tell calls changed if it is to. mu is held.
func (t *Tail) tell() {
	if t.fresh || t.now.Within != t.told.Within {
		t.fresh = false
		t.changed()
	}
}

// State returns what is known now. A progress bar is its last state.
func (t *Tail) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// setShown records whether what has been shown ends within a line, and how many lines there are.
func (t *Tail) setShown(within bool, lines int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Within, t.now.Lines = within, lines
	t.tell()
}

// Write appends b.
func (t *Tail) Write(b []byte) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	start, found := t.findTraceback(b)
	now := time.Now().UnixNano()
	t.memory.write(b, start, found, now)
	t.now.TracedAt = t.memory.traced()
	t.wroteAt(now, t.memory.from(t.memory.length-min(t.memory.length, maxLine)))
}

// WriteOther notes what the worker has written to another stream than the one of the Tail.
func (t *Tail) WriteOther(b []byte) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.other = append(t.other, b[max(0, len(b)-maxLine):]...)
	t.other = append(t.other[:0], t.other[max(0, len(t.other)-maxLine):]...)
	t.wroteAt(time.Now().UnixNano(), t.other)
}

// maxLine is how much of the end of a stream is searched for its last line.
const maxLine = 1 << 10

// wroteAt notes when the worker has written, and what the end of the stream is. mu is held.
func (t *Tail) wroteAt(now int64, end []byte) {
	if t.now.First == 0 {
		t.now.First = now
	}
	end = bytes.TrimSpace(end)
	t.now.Last = now
	t.now.Line = bytes.Clone(bytes.TrimSpace(end[bytes.LastIndexAny(end, "\r\n")+1:]))
	t.tell()
}

// tracebackStart begins the traceback of an exception in Python.
const tracebackStart = "Traceback (most recent call last):"

// findTraceback returns where the last traceback of b begins: below 0 if before b. mu is held.
func (t *Tail) findTraceback(b []byte) (at int, found bool) {
	const most = len(tracebackStart) - 1
	at = lastIndex(b)
	found = at >= 0
	if !found {
		around := append(t.edge, b[:min(len(b), most)]...)
		at = lastIndex(around)
		found = at >= 0
		at -= len(t.edge)
	}
	t.edge = append(t.edge, b[max(0, len(b)-most):]...)
	t.edge = t.edge[max(0, len(t.edge)-most):]
	return at, found
}

// lastIndex is bytes.LastIndex, but as fast as bytes.Index where there is nothing.
func lastIndex(b []byte) (at int) {
	at = -1
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(tracebackStart))
		if i < 0 {
			return at
		}
		at = from + i
		from = at + 1
	}
}

// Traceback returns what was written from the line on in which the last traceback begins, and when
// that was, in Unix nanoseconds; nil if there is none, or if more than TailSize was written since.
func (t *Tail) Traceback() (text []byte, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.memory.lastTraceback(), t.memory.traced()
}

// Bytes returns a copy of what is kept.
func (t *Tail) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.memory.from(0)
}
