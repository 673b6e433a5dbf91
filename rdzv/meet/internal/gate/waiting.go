package gate

import (
	"net"
	"syscall"
)

// waitForDecision returns when Admit or Redirect has been called, or the gate is closed.
func (g *Gate) waitForDecision(s *incoming) {
	g.mu.Lock()
	g.waiting[s] = true
	g.mu.Unlock()
	select {
	case <-g.decided:
	case <-g.ctx.Done():
	}
	g.mu.Lock()
	delete(g.waiting, s)
	g.mu.Unlock()
}

// Waiting returns the ids of the clients that wait for Admit or Redirect.
func (g *Gate) Waiting() (ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.waiting {
		if isIdle(s.Conn) {
			ids = append(ids, s.id)
		}
	}
	return ids
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
