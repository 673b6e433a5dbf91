package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/meet/internal/wire"
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

func (g *Gate) handshake(s *incoming) (net.Conn, error) {
	if g.tls != nil {
		conn := tls.Server(s, g.tls)
		if err := conn.HandshakeContext(g.ctx); err != nil {
			return nil, err
		}
		return conn, refuseOther(conn, otherVersion(s.version))
	}
	words, err := readLine(s)
	_, isVersion := errors.AsType[*protocol.VersionError](err)
	if err != nil && !isVersion {
		return nil, err
	}
	if len(words) < 3 || err == nil && len(words) != 4 || words[0] != "hello" {
		return nil, ErrNotStore
	}
	s.public, s.host, s.id = words[1], wire.Word(words[2]), wire.Word(words[len(words)-1])
	switch {
	case s.public != g.public:
		writeLine(s, "other")
		return nil, ErrDifferentJob
	case err != nil:
		return nil, refuseOther(s, err)
	}
	return s, writeLine(s, "here", g.id.String())
}

// refuseOther tells a client that it has another version, unless err is nil. Every line has the
// version of this side.
func refuseOther(conn net.Conn, err error) error {
	if err != nil {
		writeLine(conn, "version")
	}
	return err
}
