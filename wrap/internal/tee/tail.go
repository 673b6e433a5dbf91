package tee

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// TailSize is how many bytes at the end of a stream a Tail keeps.
const TailSize = 64 << 10

// Tail keeps the end of a stream: byte n of the stream at n modulo TailSize, then the length of the
// stream, when the last byte was written, in Unix nanoseconds, whether what is shown of it ends
// within a line, and how many lines had been shown there then, also of other streams. The zero
// value keeps nothing.
type Tail struct{ memory []byte }

// NewTail returns an empty Tail.
func NewTail() Tail { return Tail{make([]byte, TailSize+32)} }

func (t Tail) length() *uint64 { return (*uint64)(unsafe.Pointer(&t.memory[TailSize])) }
func (t Tail) last() *int64    { return (*int64)(unsafe.Pointer(&t.memory[TailSize+8])) }

func (t Tail) within() *uint64 { return (*uint64)(unsafe.Pointer(&t.memory[TailSize+16])) }

func (t Tail) lines() *int64 { return (*int64)(unsafe.Pointer(&t.memory[TailSize+24])) }

// setShown records whether what has been shown ends within a line, and how many lines there are.
func (t Tail) setShown(line bool, lines int64) {
	if t.memory == nil {
		return
	}
	v := uint64(0)
	if line {
		v = 1
	}
	atomic.StoreUint64(t.within(), v)
	atomic.StoreInt64(t.lines(), lines)
}

// Lines is how many lines there were where the stream is shown when the last part of it was.
func (t Tail) Lines() int64 { return atomic.LoadInt64(t.lines()) }

// EndLine reports whether what has been shown ends within a line, which the caller then ends.
func (t Tail) EndLine() bool { return atomic.SwapUint64(t.within(), 0) == 1 }

// Write appends b.
func (t Tail) Write(b []byte) {
	if t.memory == nil {
		return
	}
	n := atomic.LoadUint64(t.length()) + uint64(len(b))
	b = b[max(0, len(b)-TailSize):]
	at := (n - uint64(len(b))) % TailSize
	copied := copy(t.memory[at:TailSize], b)
	copy(t.memory, b[copied:])
	atomic.StoreUint64(t.length(), n)
	atomic.StoreInt64(t.last(), time.Now().UnixNano())
}

// LastWrite is when something was last written, in Unix nanoseconds; 0 if nothing was.
func (t Tail) LastWrite() int64 { return atomic.LoadInt64(t.last()) }

// Bytes returns a copy of what is kept.
func (t Tail) Bytes() []byte {
	n := atomic.LoadUint64(t.length())
	if n <= TailSize {
		return append([]byte(nil), t.memory[:n]...)
	}
	at := n % TailSize
	return append(append([]byte(nil), t.memory[at:TailSize]...), t.memory[:at]...)
}
