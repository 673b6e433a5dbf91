package gate

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// handshakeTimeout limits the time for the handshake of a client.
const handshakeTimeout = 5 * time.Second

// admit performs the handshake, waits for the decision, sends the greeting, and passes the
// connection to Accept.
func (g *Gate) admit(s *incoming) {
	stop := context.AfterFunc(g.ctx, func() { s.Close() })
	defer stop()
	s.SetDeadline(time.Now().Add(handshakeTimeout))
	conn, err := g.handshake(s)
	g.unauthenticated.remove(s)
	if err != nil {
		g.reject(s, err)
		s.Close()
		return
	}
	s.SetDeadline(time.Time{})
	g.passed.Store(true)
	g.waitForDecision(s)
	if err := g.greet(conn, s); err != nil {
		s.Close()
		return
	}
	stop()
	select {
	case g.accepted <- conn:
	case <-g.ctx.Done():
		s.Close()
	}
}

// handshake authenticates both sides, and tells a client that it has another version. Every line
// has the version of this side.
func (g *Gate) handshake(s *incoming) (net.Conn, error) {
	conn := tls.Server(s, g.tls)
	if err := conn.HandshakeContext(g.ctx); err != nil {
		return nil, err
	}
	err := otherVersion(s.version)
	if err != nil {
		writeLine(conn, "version")
	}
	return conn, err
}
