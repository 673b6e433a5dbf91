package presence

import (
	"errors"
	"net"
	"os"
	"time"
)

// ErrSilent is what a [LimitSilence] connection's Read returns when the peer was
// silent for too long.
var ErrSilent = errors.New("peer is silent")

// LimitSilence returns conn with a limit on the peer's silence: a Read that waits for
// limit without a byte fails with [ErrSilent].
//
// Silence counts only while this process itself ran. The wait goes in steps, and
// a step counts for no more than was asked of it: the rest is the lateness of a
// busy machine. One that took longer than the whole limit means that this
// process was stopped (Ctrl-Z, scontrol suspend, a laptop's lid) and says nothing
// about the peer, so the count begins anew.
func LimitSilence(conn net.Conn, limit time.Duration) net.Conn {
	return &silenceConn{Conn: conn, limit: limit}
}

type silenceConn struct {
	net.Conn
	limit time.Duration
}

// steps is how many late wake-ups in a row a silent peer costs: few, so that an
// idle connection wakes nobody between two pings.
const steps = 4

func (c *silenceConn) Read(b []byte) (int, error) {
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

// NewListener returns l with the limit on every connection that it accepts.
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
	return LimitSilence(conn, l.limit), nil
}
