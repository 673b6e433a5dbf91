package presence

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/peer"
)

// ErrSilent is the error of Read on a connection of [LimitSilence] whose peer was silent too long.
var ErrSilent = errors.New("peer is silent")

// LimitSilence returns conn with a limit on the peer's silence: a Read that waits for the limit
// without receiving a byte fails with [ErrSilent]. If conn has a method Silent, that is called
// then: gRPC, which reads, does not tell why a connection has ended.
//
// Only the time in which this process itself ran counts. The wait consists of steps, and each
// counts only as much as was requested; the rest is scheduling delay of a busy machine. A step that
// took longer than the limit means that this process was stopped (Ctrl-Z, scontrol suspend, a
// closed laptop). That says nothing about the peer, so that the count starts again.
//
// After ErrSilent, Close ends only this side's use of conn, and closes conn after linger. If only
// one direction of the network is interrupted, the peer would otherwise receive the end of the
// connection, and conclude that this process has ended.
func LimitSilence(conn net.Conn, limit, linger time.Duration) net.Conn {
	return &silenceConn{Conn: conn, limit: limit, linger: linger}
}

type silenceConn struct {
	net.Conn
	limit  time.Duration
	linger time.Duration
	silent atomic.Bool // it has broken, and the peer's kernel has not said so
	mute   atomic.Bool // because of ErrSilent
}

// steps is the number of waits per limit. It is small, so that an idle connection seldom wakes up
// between two pings.
const steps = 4

func (c *silenceConn) Read(b []byte) (int, error) {
	n, err := c.read(b)
	if n == 0 && err != nil && !endedByPeer(err) {
		c.silent.Store(true)
	}
	if errors.Is(err, ErrSilent) {
		c.mute.Store(true)
		if noting, ok := c.Conn.(interface{ Silent() }); ok {
			noting.Silent()
		}
	}
	return n, err
}

func (c *silenceConn) Close() error {
	if c.linger <= 0 || !c.mute.Load() {
		return c.Conn.Close()
	}
	time.AfterFunc(c.linger, func() { c.Conn.Close() })
	return c.SetDeadline(time.Now())
}

// endedByPeer tells whether the kernel at the other end has ended the connection.
func endedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET)
}

// RemoteAddr is an address by which silentPeer finds the connection of a stream.
func (c *silenceConn) RemoteAddr() net.Addr { return silenceAddr{c.Conn.RemoteAddr(), c} }

type silenceAddr struct {
	net.Addr
	conn *silenceConn
}

// silentPeer tells whether the connection of a stream, whose context it gets, has broken without
// the kernel at the other end having ended it: the process there may still run. It also tells for
// how long the peer was silent, if that is why.
func silentPeer(stream context.Context) (silent bool, after time.Duration) {
	p, _ := peer.FromContext(stream)
	if p == nil {
		return true, 0
	}
	a, ok := p.Addr.(silenceAddr)
	if ok && a.conn.mute.Load() {
		return true, a.conn.limit
	}
	return !ok || a.conn.silent.Load(), 0
}

func (c *silenceConn) read(b []byte) (int, error) {
	step := c.limit / steps
	for waited := time.Duration(0); waited < c.limit; {
		began := time.Now()
		if err := c.SetReadDeadline(began.Add(step)); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		waited += step
		if time.Since(began) > c.limit {
			waited = 0
		}
	}
	return 0, ErrSilent
}

// NewListener returns l with [LimitSilence] applied to every connection that it accepts. Close
// closes them at once: an agent that has lost the store stops its workers.
func NewListener(l net.Listener, limit time.Duration) net.Listener {
	return silenceListener{l, limit}
}

type silenceListener struct {
	net.Listener
	limit time.Duration
}

func (l silenceListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return LimitSilence(conn, l.limit, 0), nil
}
