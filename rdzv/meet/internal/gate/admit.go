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

// handshakeTimeout limits the time for the first message of a client, and then that for the rest of
// the handshake. For the rest, a client without a proof has only otherTimeout.
const (
	handshakeTimeout = 5 * time.Second
	otherTimeout     = time.Second
)

// admit performs the handshake, at once for a client with a proof of the key, otherwise when there
// is a place.
func (g *Gate) admit(s *incoming) {
	if g.tls == nil {
		conn := g.authenticate(s, handshakeTimeout)
		g.pending.remove(s)
		g.deliver(s, conn)
		return
	}
	if err := s.readHello(); err != nil {
		g.pending.remove(s)
		s.Close()
		return
	}
	if !g.proofs.accept(s.hello) {
		g.admitOthers(s)
		return
	}
	g.pending.remove(s)
	g.pending.proven <- struct{}{} // those that have a place do not wait for anything without limit
	conn := g.authenticate(s, handshakeTimeout)
	<-g.pending.proven
	g.deliver(s, conn)
}

// admitOthers performs the handshakes of s and then of parked connections, if there is a place.
func (g *Gate) admitOthers(s *incoming) {
	for entered := g.pending.enter(s); entered; entered = s != nil {
		conn := g.authenticate(s, otherTimeout)
		g.pending.remove(s)
		if admitted := s; conn != nil {
			g.done.Go(func() { g.deliver(admitted, conn) })
		}
		s = g.pending.leave()
	}
}

// authenticate performs the handshake. It returns the connection on which the greeting follows; nil
// if the client was rejected.
func (g *Gate) authenticate(s *incoming, limit time.Duration) net.Conn {
	stop := context.AfterFunc(g.ctx, func() { s.Close() })
	defer stop()
	s.SetDeadline(time.Now().Add(limit))
	conn, err := g.handshake(s)
	if err != nil {
		g.reject(s, err)
		s.Close()
		return nil
	}
	s.SetDeadline(time.Time{})
	g.passed.Store(true)
	return conn
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

// deliver waits for the decision, sends the greeting and passes the connection to Accept.
func (g *Gate) deliver(s *incoming, conn net.Conn) {
	if conn == nil {
		return
	}
	stop := context.AfterFunc(g.ctx, func() { s.Close() })
	defer stop()
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
