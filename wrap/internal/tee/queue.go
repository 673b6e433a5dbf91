package tee

import (
	"bytes"
	"sync"
	"syscall"
	"time"
)

// queue is what is to be written to a terminal. It is written by a goroutine of its own: a terminal
// that a user has stopped (Ctrl-S) then blocks neither the logs, nor what is known of a worker, nor
// the end of the tree.
type queue struct {
	write func([]byte) syscall.Errno

	mu      sync.Mutex
	changed *sync.Cond
	begun   bool // the goroutine runs
	over    bool // nothing more is added
	failed  syscall.Errno
	text    []byte // to be written
	shares  []share
	written int           // counts writes
	done    chan struct{} // closed when it is over and everything has been written
}

// share says whose the next bytes are.
type share struct {
	of    *backlog
	bytes int
}

// backlog is what of a stream is in a queue.
type backlog struct {
	to      *Screen
	asIs    bool   // nothing is added to it
	bytes   int    // queue.mu is held
	changed func() // it has become smaller; without queue.mu
}

// mostBehind is how much of a stream may be in a queue before it is not read further, unless its
// worker has ended.
const mostBehind = 64 << 10

func newQueue(write func([]byte) syscall.Errno) *queue {
	q := &queue{write: write, done: make(chan struct{})}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// add adds a part of a stream, after what screen notes of it. It fails if a write has failed.
func (q *queue) add(b []byte, of *backlog, note func() (before []byte)) syscall.Errno {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.failed != 0 || q.over {
		return q.failed
	}
	before := len(q.text)
	q.text = append(q.text, note()...)
	q.text = append(q.text, b...)
	n := len(q.text) - before
	q.shares = append(q.shares, share{of, n})
	of.bytes += n
	if !q.begun {
		q.begun = true
		go q.run()
	}
	q.changed.Broadcast()
	return 0
}

// behind is how much of a stream has not been written.
func (q *queue) behind(b *backlog) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return b.bytes
}

// run writes until it is over and nothing is left.
func (q *queue) run() {
	defer close(q.done)
	var text []byte
	for {
		q.mu.Lock()
		for len(q.text) == 0 && !q.over {
			q.changed.Wait()
		}
		text, q.text = q.text, text[:0]
		q.mu.Unlock()
		if len(text) == 0 {
			return
		}
		for rest := text; len(rest) > 0; {
			n := firstPart(rest)
			errno := q.write(rest[:n])
			rest = rest[n:]
			if errno != 0 {
				n, rest = n+len(rest), nil
			}
			q.wrote(n, errno)
		}
		if cap(text) > maxHeld {
			text = nil
		}
	}
}

// firstPart is how much of a text one write has: lines, as far as possible.
func firstPart(text []byte) int {
	if len(text) <= pipeBuf {
		return len(text)
	}
	if n := bytes.LastIndexByte(text[:pipeBuf], '\n'); n >= 0 {
		return n + 1
	}
	return pipeBuf
}

// wrote notes that n bytes have been written, or could not be.
func (q *queue) wrote(n int, errno syscall.Errno) {
	q.mu.Lock()
	if q.written++; errno != 0 {
		q.failed, n = errno, n+len(q.text)
		q.text = q.text[:0]
	}
	var smaller []*backlog
	for n > 0 {
		first := &q.shares[0]
		m := min(n, first.bytes)
		first.bytes -= m
		first.of.bytes -= m
		if n -= m; len(smaller) == 0 || smaller[len(smaller)-1] != first.of {
			smaller = append(smaller, first.of)
		}
		if first.bytes == 0 {
			q.shares = q.shares[1:]
		}
	}
	q.mu.Unlock()
	for _, b := range smaller {
		b.changed()
	}
}

// close ends the queue when everything has been written.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over = true; !q.begun {
		q.begun = true
		close(q.done)
	}
	q.changed.Broadcast()
}

// await waits until everything has been written, as long as something is written within limit, and
// reports whether it has.
func (q *queue) await(limit time.Duration) bool {
	for before := q.writes(); ; {
		select {
		case <-q.done:
			return true
		case <-time.After(limit):
		}
		now := q.writes()
		if now == before {
			return false
		}
		before = now
	}
}

func (q *queue) writes() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.written
}
