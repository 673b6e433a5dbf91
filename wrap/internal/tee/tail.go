package tee

import (
	"bytes"
	"sync"
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
	memory *Memory
	edge   []byte // the last bytes of the stream, in which a traceback may begin
	within bool   // what is shown of the stream ends within a line
	lines  int64  // how many lines had been shown there then, also of other streams
}

// NewTail returns an empty Tail with this memory; nil is memory of its own.
func NewTail(memory *Memory) Tail {
	if memory == nil {
		memory = new(Memory)
	}
	return Tail{&kept{memory: memory}}
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
	start, found := k.findTraceback(b)
	k.memory.write(b, start, found, time.Now().UnixNano())
}

// WriteOther notes what the worker has written to another stream than the one of the Tail.
func (t Tail) WriteOther(b []byte) {
	if t.kept == nil {
		return
	}
	t.kept.mu.Lock()
	defer t.kept.mu.Unlock()
	t.kept.memory.writeOther(b, time.Now().UnixNano())
}

// tracebackStart begins the traceback of an exception in Python.
const tracebackStart = "Traceback (most recent call last):"

// findTraceback returns where the last traceback of b begins: below 0 if before b. mu is held.
func (k *kept) findTraceback(b []byte) (at int, found bool) {
	const most = len(tracebackStart) - 1
	at = lastIndex(b)
	found = at >= 0
	if !found {
		around := append(k.edge, b[:min(len(b), most)]...)
		at = lastIndex(around)
		found = at >= 0
		at -= len(k.edge)
	}
	k.edge = append(k.edge, b[max(0, len(b)-most):]...)
	k.edge = k.edge[max(0, len(k.edge)-most):]
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

// LastWrite is when something was last written, in Unix nanoseconds; 0 if nothing was.
func (t Tail) LastWrite() int64 { return t.kept.memory.LastWrite() }

// FirstWrite is Memory.FirstWrite.
func (t Tail) FirstWrite() int64 { return t.kept.memory.FirstWrite() }

// LastLine is Memory.LastLine.
func (t Tail) LastLine() string {
	t.kept.mu.Lock()
	defer t.kept.mu.Unlock()
	return t.kept.memory.LastLine()
}

// Traceback is Memory.Traceback.
func (t Tail) Traceback() (text []byte, at int64) {
	t.kept.mu.Lock()
	defer t.kept.mu.Unlock()
	return t.kept.memory.Traceback()
}

// Bytes returns a copy of what is kept.
func (t Tail) Bytes() []byte {
	t.kept.mu.Lock()
	defer t.kept.mu.Unlock()
	return t.kept.memory.from(0)
}
