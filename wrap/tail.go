package wrap

import "sync"

// tailSize is how many bytes at the end of a stream are kept.
const tailSize = 64 << 10

// tail keeps the last tailSize bytes written to it. It grows with what is written: most workers
// write little.
type tail struct {
	mu   sync.Mutex
	kept []byte // a ring once it has tailSize bytes
	next int    // where the ring continues
}

func (t *tail) write(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b = b[max(0, len(b)-tailSize):]
	room := min(tailSize-len(t.kept), len(b))
	t.kept = append(t.kept, b[:room]...)
	for b = b[room:]; len(b) > 0; {
		n := copy(t.kept[t.next:], b)
		t.next, b = (t.next+n)%tailSize, b[n:]
	}
}

// bytes returns a copy of the kept bytes.
func (t *tail) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(append([]byte(nil), t.kept[t.next:]...), t.kept[:t.next]...)
}
