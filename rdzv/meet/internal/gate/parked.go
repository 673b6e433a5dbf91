package gate

import (
	"net"
	"syscall"
)

// park waits until it is decided who hosts.
func (g *Gate) park(s *incoming) {
	g.mu.Lock()
	g.parked[s] = true
	g.mu.Unlock()
	select {
	case <-g.decided:
	case <-g.ctx.Done():
	}
	g.mu.Lock()
	delete(g.parked, s)
	g.mu.Unlock()
}

// Waiting says that somebody waits for the decision. They are silent until they are greeted: one of
// whom there is something to read has said goodbye.
func (g *Gate) Waiting() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.parked {
		if silent(s.Conn) {
			return true
		}
	}
	return false
}

func silent(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	nothing := false
	err = raw.Control(func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		nothing = err == syscall.EAGAIN
	})
	return err == nil && nothing
}
