package gate

import (
	"context"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// maxPending is the maximum number of connections in the handshake.
const maxPending = 256

// If there are maxPending connections, the oldest one is closed to make space: one that has not
// identified itself after silentLimit, one that has after busyLimit. busyLimit is longer because a
// thousand agents that connect at once may only be waiting for this host's processors.
const (
	silentLimit = 250 * time.Millisecond
	busyLimit   = time.Second
)

// pending contains the connections that are in the handshake, the oldest first.
type pending struct {
	mu    sync.Mutex
	conns []*incoming
	freed chan struct{} // contains an element when there may be space again
}

// An incoming is a connection from its accept(2) on.
type incoming struct {
	net.Conn
	since time.Time

	mu         sync.Mutex
	public     string // public name of the job that the client has named
	host       string // the name that the client gives its host, not verified
	identified bool
}

func newPending() *pending { return &pending{freed: make(chan struct{}, 1)} }

func (p *pending) add(conn net.Conn) *incoming {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &incoming{Conn: conn, since: time.Now()}
	p.conns = append(p.conns, s)
	return s
}

func (p *pending) remove(s *incoming) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.conns, s); i >= 0 {
		p.conns = slices.Delete(p.conns, i, i+1)
	}
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// waitForSpace returns when one more connection can be accepted, or ctx ends. It closes connections
// that have reached their limit.
func (p *pending) waitForSpace(ctx context.Context) {
	for ctx.Err() == nil {
		full, expired := p.expired(time.Now())
		if !full {
			return
		}
		if expired != nil {
			expired.Close()
			p.remove(expired)
			continue
		}
		p.wait(ctx)
	}
}

func (p *pending) wait(ctx context.Context) {
	t := time.NewTimer(silentLimit / 4)
	defer t.Stop()
	select {
	case <-p.freed:
	case <-t.C:
	case <-ctx.Done():
	}
}

// expired reports whether there is no space, and returns a connection that may be closed; nil if
// there is none.
func (p *pending) expired(now time.Time) (full bool, expired *incoming) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.conns) < maxPending {
		return false, nil
	}
	for _, s := range p.conns {
		if !s.isIdentified() && now.Sub(s.since) >= silentLimit {
			return true, s
		}
	}
	if oldest := p.conns[0]; now.Sub(oldest.since) >= busyLimit {
		return true, oldest
	}
	return true, nil
}

func (s *incoming) identify(public, host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.public, s.host, s.identified = public, host, true
}

func (s *incoming) isIdentified() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.identified
}

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

// HasWaiting reports whether a client waits for Admit or Redirect.
func (g *Gate) HasWaiting() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.waiting {
		if isIdle(s.Conn) {
			return true
		}
	}
	return false
}

// isIdle reports whether the connection is open and there is nothing to read. A client that waits
// for the greeting sends nothing, so anything to read is the end of the connection.
func isIdle(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	idle := false
	err = raw.Control(func(fd uintptr) {
		const flags = syscall.MSG_PEEK | syscall.MSG_DONTWAIT
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), flags)
		idle = err == syscall.EAGAIN
	})
	return err == nil && idle
}
