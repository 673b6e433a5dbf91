package integration

import (
	"net"
	"testing"
	"time"
)

// slowRead is longer than the host of the store waits for agents that do not leave.
const slowRead = 3 * time.Second

// The host of the store waits for the agent that reports the failure, and that reads how all workers
// have ended before.
func TestSlowReporter(t *testing.T) {
	t.Parallel()
	s := scaleJob{"plain", "fail"}.start(t, 3)
	s.joinAll()
	s.slow.Store(true)
	s.finish()
	s.host.checkCode(1)
}

// slowReads delays everything that the agent receives whose worker fails, while s.slow is set.
func (s *simulation) slowReads(a *simulatedAgent, conn net.Conn) net.Conn {
	if a != s.agents[len(s.agents)-1] {
		return conn
	}
	return slowConn{conn, s}
}

type slowConn struct {
	net.Conn
	s *simulation
}

func (c slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.s.slow.Load() && n > 0 {
		time.Sleep(slowRead)
	}
	return n, err
}
