package presence

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
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
	mute   atomic.Bool // Read has failed with ErrSilent
	ended  atomic.Bool // Read has returned end of file
}

// steps is the number of waits per limit. It is small, so that an idle connection seldom wakes up
// between two pings.
const steps = 4

func (c *silenceConn) Read(b []byte) (int, error) {
	n, err := c.read(b)
	if err == io.EOF {
		c.ended.Store(true)
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

// RemoteAddr is an address by which connOf finds the connection of a stream.
func (c *silenceConn) RemoteAddr() net.Addr { return silenceAddr{c.Conn.RemoteAddr(), c} }

type silenceAddr struct {
	net.Addr
	conn *silenceConn
}

// connOf returns the connection of a stream, whose context it gets; nil if it is none of
// [LimitSilence].
func connOf(stream context.Context) *silenceConn {
	if p, _ := peer.FromContext(stream); p != nil {
		if a, ok := p.Addr.(silenceAddr); ok {
			return a.conn
		}
	}
	return nil
}

// endOf tells how the connection of a stream has ended, whose context it gets: whether the kernel
// at the other end has sent its end, when all processes had closed it, and for how long the peer
// was silent, if that is why.
func endOf(stream context.Context) (ended bool, silent time.Duration) {
	c := connOf(stream)
	if c == nil {
		return false, 0
	}
	if c.mute.Load() {
		silent = c.limit
	}
	return c.atEnd(), silent
}

// atEnd tells whether Read has returned end of file. If the connection is one of TLS its end only
// says that the process at the other end does not use it any more; the connection below must tell
// then, with a method AtEnd.
func (c *silenceConn) atEnd() bool {
	lower := below(c.Conn)
	if lower == c.Conn {
		return c.ended.Load()
	}
	noting, ok := lower.(interface{ AtEnd() bool })
	return ok && noting.AtEnd()
}

// below is the connection that another one uses, such as one of TLS.
func below(conn net.Conn) net.Conn {
	for {
		upper, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn
		}
		conn = upper.NetConn()
	}
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
