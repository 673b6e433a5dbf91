package wrap

import (
	"errors"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pumpWait is how long a pump may continue after its worker has ended, and again after the tree
// has: a reader that does not read, or another process that keeps the pipe open, must not delay
// Run.
const pumpWait = 200 * time.Millisecond

// pump copies the standard error of a worker to its destination and keeps the end of it.
type pump struct {
	from *os.File        // the read end of the pipe
	raw  syscall.RawConn // its descriptor
	to   *os.File        // see openSink
	tail tail
	last atomic.Int64 // when something was last read, in Unix nanoseconds
	line *Line        // may be nil

	once    sync.Once
	drained chan struct{} // closed when all that the worker itself wrote has been copied
	done    chan struct{} // closed when the pump has ended

	mu      sync.Mutex
	closing bool // close has been called
}

// startPump returns a pump to the file to, and the write end of its pipe, for the worker.
func startPump(to *os.File, line *Line) (*pump, *os.File, error) {
	sink, err := openSink(to)
	if err != nil {
		return nil, nil, err
	}
	from, write, err := pipe()
	if err != nil {
		sink.Close()
		return nil, nil, err
	}
	p := &pump{
		from: from, to: sink, line: line,
		drained: make(chan struct{}), done: make(chan struct{}),
	}
	p.raw, _ = from.SyscallConn() // fails only without a file
	go p.run()
	return p, write, nil
}

// run copies until the last writer or the reader has closed its end, or until the deadline of
// close.
func (p *pump) run() {
	defer close(p.done)
	defer p.from.Close()
	defer p.to.Close()
	defer p.setDrained()
	const unlimited = math.MaxInt // more than a worker can write
	for left := unlimited; ; {    // bytes that the worker has written and that are not copied
		n, err := p.copyChunk()
		if errors.Is(err, os.ErrDeadlineExceeded) && p.resume() {
			left, err = p.inPipe(), nil
		}
		if err != nil {
			return
		}
		if left -= n; left <= 0 {
			p.setDrained()
			left = unlimited
		}
	}
}

func (p *pump) setDrained() { p.once.Do(func() { close(p.drained) }) }

// chunks are read buffers. A pump uses one only while it copies.
var chunks = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// copyChunk copies what one read returns, and returns its length. If the reader of the destination
// has closed its end, that is an error: the pump then closes the pipe, so that the worker gets
// SIGPIPE as if it wrote to that reader itself.
func (p *pump) copyChunk() (n int, err error) {
	waited := p.raw.Read(func(fd uintptr) bool {
		b := chunks.Get().(*[64 << 10]byte)
		defer chunks.Put(b)
		for err = unix.EINTR; err == unix.EINTR; {
			n, err = unix.Read(int(fd), b[:])
		}
		if n > 0 {
			p.tail.write(b[:n])
			p.last.Store(time.Now().UnixNano())
			err = p.write(b[:n])
		}
		return err != unix.EAGAIN
	})
	switch {
	case waited != nil:
		return 0, waited
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return max(n, 0), err
}

// write writes b to the destination. It returns an error if the reader has closed its end or at the
// deadline. Other errors (a full disk) are ignored: the tail still keeps what could not be written.
func (p *pump) write(b []byte) error {
	n, err := p.to.Write(b)
	p.line.wrote(b[:max(n, 0)])
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) ||
		errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

// inPipe is the number of bytes in the pipe.
func (p *pump) inPipe() (n int) {
	_ = p.raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}

// workerEnded is called when the worker has ended, so that all that it wrote is in the pipe. When
// that has been copied, drained is closed.
func (p *pump) workerEnded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.from.SetReadDeadline(time.Unix(1, 0)) // interrupts copyChunk; fails if the pump has ended
}

// resume removes the deadline of workerEnded. It reports false if it was the deadline of close.
func (p *pump) resume() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closing && p.from.SetReadDeadline(time.Time{}) == nil
}

// text waits until all that the worker itself wrote has been copied, at most until until, and
// returns the end of it.
func (p *pump) text(until time.Time) []byte {
	select {
	case <-p.drained:
	case <-time.After(time.Until(until)):
	}
	return p.tail.bytes()
}

// close makes the pump end at until, unless it ends before. It may be called again.
func (p *pump) close(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing = true
	_ = p.from.SetReadDeadline(until) // fails if the pump has ended
	_ = p.to.SetWriteDeadline(until)  // regular files support no deadline and need none
}

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
