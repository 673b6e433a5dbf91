package gate

import (
	"net"
	"net/netip"
	"syscall"
)

// waitForDecision returns when Admit has been called, or the gate is closed.
func (g *Gate) waitForDecision(s *incoming) {
	g.mu.Lock()
	g.clients[s] = false
	g.mu.Unlock()
	select {
	case <-g.decided:
	case <-g.ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.clients[s]; known && g.hasID(s) && !g.full.Load() {
		g.clients[s] = true
	} else {
		delete(g.clients, s)
	}
}

// hasID reports whether the client takes part in an election.
func (g *Gate) hasID(s *incoming) bool { return len(s.id) == len(g.id.String()) }

// A Client is an agent that has passed the handshake.
type Client struct {
	ID      string // see NewDialer
	Host    string // the name that it gives its host
	Addr    netip.Addr
	Waiting bool // for Admit
	Gone    bool // the connection has ended; the client is not listed again
}

// Clients returns the clients that wait for Admit, and those with an id that have been
// admitted.
func (g *Gate) Clients() (list []Client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s, admitted := range g.clients {
		gone := s.closed.Load() || !admitted && !isIdle(s.Conn)
		if gone {
			delete(g.clients, s)
		}
		from := addrOf(s.RemoteAddr()).Addr()
		list = append(list, Client{s.id, s.host, from, !admitted && !gone, gone})
	}
	return list
}

// isIdle reports whether the connection is open and there is nothing to read. A client that waits
// for the greeting sends nothing, so anything to read is the end of the connection.
func isIdle(conn net.Conn) bool {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	idle := false
	raw.Control(func(fd uintptr) {
		const flags = syscall.MSG_PEEK | syscall.MSG_DONTWAIT
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), flags)
		idle = err == syscall.EAGAIN
	})
	return idle
}
