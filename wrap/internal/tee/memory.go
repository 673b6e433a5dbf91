package tee

import "bytes"

// memory is the end of a stream.
type memory struct {
	length    uint64         // of the stream
	traceback uint64         // where in the stream the last traceback begins
	tracedAt  int64          // when that was written, in Unix nanoseconds; 0 if there is none
	bytes     [TailSize]byte // byte n of the stream at n modulo TailSize
}

// write appends b, with which a traceback begins if one was found: there, or before b.
func (m *memory) write(b []byte, traceback int, found bool, now int64) {
	if found {
		m.traceback, m.tracedAt = uint64(int64(m.length)+int64(traceback)), now
	}
	m.length += uint64(len(b))
	kept := b[max(0, len(b)-TailSize):]
	at := (m.length - uint64(len(kept))) % TailSize
	copied := copy(m.bytes[at:], kept)
	copy(m.bytes[:], kept[copied:])
}

// maxBefore is how much may stand before the start of a traceback on its line.
const maxBefore = 256

// lastTraceback returns what was written from the line on in which the last traceback begins; nil
// if there is none, or if more than TailSize was written since.
func (m *memory) lastTraceback() []byte {
	if m.traced() == 0 {
		return nil
	}
	from := max(m.traceback-min(m.traceback, maxBefore), m.oldest())
	text := m.from(from)
	line := bytes.LastIndexByte(text[:m.traceback-from], '\n') + 1
	return text[line:]
}

// traced is when the last traceback was written, in Unix nanoseconds; 0 if none is kept.
func (m *memory) traced() int64 {
	if m.traceback < m.oldest() {
		return 0
	}
	return m.tracedAt
}

// oldest is where in the stream the bytes begin that are kept.
func (m *memory) oldest() uint64 { return m.length - min(m.length, TailSize) }

// from returns a copy of what is kept of the stream from a place on.
func (m *memory) from(start uint64) []byte {
	first := max(start, m.oldest())
	text := make([]byte, m.length-first)
	copied := copy(text, m.bytes[first%TailSize:])
	copy(text[copied:], m.bytes[:])
	return text
}
