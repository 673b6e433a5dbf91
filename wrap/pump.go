package wrap

import (
	"errors"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pumpWait is how long after its worker's, and again after its tree's end, a pump may still be at work: a
// reader that is stuck, or a stranger that holds the stream, must not hold up the end.
const pumpWait = 200 * time.Millisecond

// pump carries a worker's standard error through this process: on to where it was to go, then into memory.
type pump struct {
	from *os.File // our end of the pipe
	to   *sink
	tail tail

	once    sync.Once
	settled chan struct{} // closed when all that the worker itself wrote has gone through
	done    chan struct{} // closed when the pump has ended

	mu      sync.Mutex
	closing bool // the tree is gone
}

// startPump returns a pump to to and the end of the pipe that the worker is to write to.
func startPump(to *os.File) (*pump, *os.File, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	write := os.NewFile(uintptr(ends[1]), "stderr")
	from, err := pollable(ends[0], "stderr")
	if err != nil {
		write.Close()
		return nil, nil, err
	}
	out, err := openSink(to)
	if err != nil {
		from.Close()
		write.Close()
		return nil, nil, err
	}
	p := &pump{from: from, to: out, settled: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p, write, nil
}

// run carries until the last writer has closed its end, the reader has gone, or close says so.
func (p *pump) run() {
	defer close(p.done)
	defer p.from.Close()
	defer p.to.close()
	defer p.settle()
	for owed := forever; ; {
		n, err := p.carry()
		if errors.Is(err, os.ErrDeadlineExceeded) && p.resume() {
			owed, err = p.inPipe(), nil
		}
		if err != nil {
			return
		}
		if owed -= n; owed <= 0 {
			p.settle()
			owed = forever
		}
	}
}

// forever is more than a worker can write.
const forever = math.MaxInt

// settle says that all that the worker itself has written is through.
func (p *pump) settle() { p.once.Do(func() { close(p.settled) }) }

// chunks are buffers for what is read at once: a pump holds one only while it carries.
var chunks = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// carry takes one chunk through and returns its length. A reader that has gone is an error: the pump then closes the
// pipe, so that the worker gets SIGPIPE as it would have got from the reader.
func (p *pump) carry() (n int, err error) {
	raw, err := p.from.SyscallConn()
	if err != nil {
		return 0, err
	}
	waited := raw.Read(func(fd uintptr) bool {
		b := chunks.Get().(*[64 << 10]byte)
		defer chunks.Put(b)
		for err = unix.EINTR; err == unix.EINTR; {
			n, err = unix.Read(int(fd), b[:])
		}
		if n > 0 {
			p.tail.write(b[:n])
			err = p.to.write(b[:n])
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

// inPipe is how many bytes are in the pipe just now.
func (p *pump) inPipe() (n int) {
	raw, err := p.from.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return n
}

// end says that the worker has ended: what it wrote is in the pipe by now, and settled tells when it is through.
func (p *pump) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.from.SetReadDeadline(time.Unix(1, 0)) // wakes carry; an error means that the pump has ended already
}

// resume takes the deadline of end back; it reports false if it was that of close.
func (p *pump) resume() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closing && p.from.SetReadDeadline(time.Time{}) == nil
}

// text waits until the worker's own output is through, or at most until until, and returns the end of it.
func (p *pump) text(until time.Time) []byte {
	late := time.NewTimer(time.Until(until))
	defer late.Stop()
	select {
	case <-p.settled:
	case <-late.C:
	}
	return p.tail.bytes()
}

// close ends the pump at until, if nothing has before. It may be called again.
func (p *pump) close(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing = true
	_ = p.from.SetReadDeadline(until) // an error means that the pump has ended already
	p.to.hurry(until)
}

// wait waits for the end of the pump, at most until shortly after until. A reader that can neither be waited for nor
// hurried keeps its goroutine, which then ends with its write or with the process.
func (p *pump) wait(until time.Time) {
	late := time.NewTimer(time.Until(until) + pumpWait/4)
	defer late.Stop()
	select {
	case <-p.done:
	case <-late.C:
	}
}
