package starter

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

var errEnded = errors.New("it has ended")

// node is the starter's end of a connection. Only job.run changes exited, code, lost and silence.
type node struct {
	index      int
	host       Host
	connection *Connection
	name       string        // its own, from its first report
	done       chan struct{} // closed when nothing more can be read
	exited     bool
	code       int
	lost       error // why it is lost
	silence    time.Duration
	heard      atomic.Bool // something was received since the last beat
	busy       atomic.Bool // what was received is being shown, which may take any time

	mu     sync.Mutex
	more   *sync.Cond
	orders []Order // not yet written
	idle   bool    // all are written
	closed bool
	taken  int // of the input, as the node says
	sent   int
}

func newNode(index int, host Host, c *Connection) *node {
	n := &node{index: index, host: host, connection: c, done: make(chan struct{}), name: host.Name}
	n.more = sync.NewCond(&n.mu)
	return n
}

// ended tells whether nothing more is expected of it.
func (n *node) ended() bool { return n.exited || n.lost != nil }

// lose gives the node up.
func (n *node) lose(err error) {
	if n.ended() {
		return
	}
	n.lost = err
	n.endOrders()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	go n.connection.Close(now)
}

// exit notes the exit code of the agent.
func (n *node) exit(code int) {
	n.exited, n.code = true, code
	n.endOrders()
}

func (n *node) endOrders() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.more.Broadcast()
}

// order sends an order, without waiting.
func (n *node) order(o Order) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.orders = append(n.orders, o)
	n.idle = false
	n.more.Broadcast()
}

// write writes orders until the node has ended. If that fails, read notices it too.
func (n *node) write() {
	to := &sender{to: n.connection.Stdin}
	for {
		n.mu.Lock()
		for len(n.orders) == 0 && !n.closed {
			n.idle = true
			n.more.Broadcast()
			n.more.Wait()
		}
		orders := n.orders
		n.orders = nil
		closed := n.closed
		n.mu.Unlock()
		for _, o := range orders {
			_ = to.send(o)
		}
		if closed {
			return
		}
	}
}

// written is closed when all orders are written.
func (n *node) written() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.mu.Lock()
		defer n.mu.Unlock()
		for !n.idle && !n.closed {
			n.more.Wait()
		}
	}()
	return done
}

// read takes what the node reports until the connection ends. It shows output itself: a reader who
// does not read it holds up the node, and not the others.
func (n *node) read(j *job) {
	defer close(n.done)
	first, exited := true, false
	gone := make(chan error, 1)
	go n.await(j, gone)
	for {
		r, err := receiveReport(n.connection.Stdout)
		if err == nil && first && r.Hello == "" {
			err = errForeign
		}
		if err == io.EOF {
			err = errEnded
		}
		if err != nil {
			if !exited {
				err = cmp.Or(soon(gone), err)
				j.tell(event{node: n, err: err})
			}
			return
		}
		n.heard.Store(true)
		n.busy.Store(true)
		switch {
		case first:
			n.name, first = r.Hello, false
		case r.Output != nil:
			n.show(j, r.Output)
		case r.Taken > 0:
			n.take(r.Taken)
		case r.Store != nil || r.Line != nil || r.File != "" || r.Exit != nil:
			j.tell(event{node: n, report: r})
			exited = exited || r.Exit != nil
		}
		n.busy.Store(false)
	}
}

// closeSoon is how much later the end of the process here may be known than that of what it writes,
// or before it.
const closeSoon = time.Second

// await waits for the end of the process at this end. It is the end of the connection also if
// others have its stdout.
func (n *node) await(j *job, gone chan<- error) {
	err := n.connection.Wait()
	gone <- err
	select {
	case <-n.done:
	case <-time.After(closeSoon):
		j.tell(event{node: n, err: cmp.Or(err, errEnded)})
	}
}

// soon is the error with which the process at this end ends, if it does.
func soon(gone <-chan error) error {
	select {
	case err := <-gone:
		return err
	case <-time.After(closeSoon):
		return nil
	}
}

// show shows what a worker has written. If nobody reads it, its worker is to know.
func (n *node) show(j *job, o *Output) {
	s := j.screens[o.Stream-1]
	if s.write(source{n.index, o.Stream, o.Rank}, n.name, o.Text) != nil {
		n.order(Order{Unread: o.Stream})
	}
}

// forward sends input, no more than the node takes.
func (n *node) forward(from *os.File) {
	copyTo(from, func(text []byte) {
		n.mu.Lock()
		for n.sent-n.taken > inputWindow && !n.closed {
			n.more.Wait()
		}
		n.sent += len(text)
		n.mu.Unlock()
		n.order(Order{Input: append([]byte(nil), text...)})
	})
	n.order(Order{EndOf: true})
}

func (n *node) take(size int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.taken += size
	n.more.Broadcast()
}
