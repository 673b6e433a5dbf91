package tee

import (
	"bytes"
	"sync/atomic"
)

// Memory is that of a Tail. Another process may have it too, and read it while the Tail writes.
type Memory struct {
	first     int64          // when the first byte was written, in Unix nanoseconds
	last      int64          // when the last byte was written
	begun     uint64         // the length of the stream with what is being written
	length    uint64         // of the stream
	traceback uint64         // where in the stream the last traceback begins
	tracedAt  int64          // when that was written, in Unix nanoseconds; 0 if there is none
	bytes     [TailSize]byte // byte n of the stream at n modulo TailSize

	// The last bytes of another stream of the same worker: how many there are, and when the last one
	// was written; 0 if none was.
	otherAt  int64
	otherEnd uint64
	other    [maxLine]byte
}

// maxLine is how much of the end of a stream LastLine considers.
const maxLine = 1 << 10

// write appends b, with which a traceback begins if one was found: there, or before b.
func (m *Memory) write(b []byte, traceback int, found bool, now int64) {
	length := m.length + uint64(len(b))
	atomic.StoreUint64(&m.begun, length)
	m.wroteAt(now)
	kept := b[max(0, len(b)-TailSize):]
	at := (length - uint64(len(kept))) % TailSize
	copied := copy(m.bytes[at:], kept)
	copy(m.bytes[:], kept[copied:])
	if found {
		atomic.StoreUint64(&m.traceback, uint64(int64(m.length)+int64(traceback)))
		atomic.StoreInt64(&m.tracedAt, now)
	}
	atomic.StoreUint64(&m.length, length)
}

// writeOther notes what was written to the other stream.
func (m *Memory) writeOther(b []byte, now int64) {
	m.wroteAt(now)
	kept := append(bytes.Clone(m.other[:m.otherEnd]), b[max(0, len(b)-maxLine):]...)
	end := copy(m.other[:], kept[max(0, len(kept)-maxLine):])
	atomic.StoreUint64(&m.otherEnd, uint64(end))
	atomic.StoreInt64(&m.otherAt, now)
}

func (m *Memory) wroteAt(now int64) {
	if m.first == 0 {
		atomic.StoreInt64(&m.first, now)
	}
	atomic.StoreInt64(&m.last, now)
}

// LastLine is the last line of either stream that is not blank, complete or not; "" if there is
// none. A progress bar is its last state.
func (m *Memory) LastLine() string {
	length := atomic.LoadUint64(&m.length)
	text := m.from(length - min(length, maxLine))
	if at := atomic.LoadInt64(&m.otherAt); at != 0 && at == m.LastWrite() {
		text = m.other[:min(atomic.LoadUint64(&m.otherEnd), maxLine)]
	}
	text = bytes.TrimSpace(text)
	return string(bytes.TrimSpace(text[bytes.LastIndexAny(text, "\r\n")+1:]))
}

// FirstWrite is when something was first written to either stream, as LastWrite.
func (m *Memory) FirstWrite() int64 { return atomic.LoadInt64(&m.first) }

// LastWrite is Tail.LastWrite.
func (m *Memory) LastWrite() int64 { return atomic.LoadInt64(&m.last) }

// maxBefore is how much may stand before the start of a traceback on its line.
const maxBefore = 256

// Traceback returns what was written from the line on in which the last traceback begins, and when
// that was, in Unix nanoseconds; nil if there is none, or if more than TailSize was written since.
func (m *Memory) Traceback() (text []byte, at int64) {
	if at = atomic.LoadInt64(&m.tracedAt); at == 0 {
		return nil, 0
	}
	start := atomic.LoadUint64(&m.traceback)
	from := start - min(start, maxBefore)
	text = m.from(from)
	from = max(from, m.oldest())
	if start < from || atomic.LoadUint64(&m.traceback) != start || len(text) < int(start-from) {
		return nil, 0
	}
	line := bytes.LastIndexByte(text[:start-from], '\n') + 1
	return text[line:], at
}

// oldest is where in the stream the bytes begin that are not being overwritten.
func (m *Memory) oldest() uint64 {
	begun := atomic.LoadUint64(&m.begun)
	return begun - min(begun, TailSize)
}

// from returns a copy of what is kept of the stream from a place on.
func (m *Memory) from(start uint64) []byte {
	length := atomic.LoadUint64(&m.length)
	first := max(start, length-min(length, TailSize))
	text := make([]byte, length-first)
	copied := copy(text, m.bytes[first%TailSize:])
	copy(text[copied:], m.bytes[:])
	if overwritten := m.oldest(); overwritten > first { // meanwhile
		text = text[min(uint64(len(text)), overwritten-first):]
	}
	return text
}
