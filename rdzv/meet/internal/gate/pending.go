package gate

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

// maxPending is how many connections may be on their way through the handshake.
const maxPending = 256

// When there is no room, the oldest goes: one that has said nothing yet after silentAge, one that
// has after busyAge. A thousand honest agents that come at once only wait for this processor, and
// must not be thrown out for that.
const (
	silentAge = 250 * time.Millisecond
	busyAge   = time.Second
)

// pending holds the connections that have not passed the handshake, the oldest first.
type pending struct {
	mu    sync.Mutex
	conns []*incoming
	freed chan struct{} // has an element when there may be room again
}

// An incoming is a connection that has not passed the handshake.
type incoming struct {
	net.Conn
	since time.Time

	mu     sync.Mutex
	public string // the job it asked for
	host   string // the name it gives itself; not to be trusted
	spoke  bool
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

// room returns when one more connection can be taken in, or ctx ends.
func (p *pending) room(ctx context.Context) {
	for ctx.Err() == nil {
		full, victim := p.victim(time.Now())
		if !full {
			return
		}
		if victim != nil {
			victim.Close()
			p.remove(victim)
			continue
		}
		p.wait(ctx)
	}
}

func (p *pending) wait(ctx context.Context) {
	t := time.NewTimer(silentAge / 4)
	defer t.Stop()
	select {
	case <-p.freed:
	case <-t.C:
	case <-ctx.Done():
	}
}

func (p *pending) victim(now time.Time) (full bool, victim *incoming) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.conns) < maxPending {
		return false, nil
	}
	for _, s := range p.conns {
		if !s.hasSpoken() && now.Sub(s.since) >= silentAge {
			return true, s
		}
	}
	if oldest := p.conns[0]; now.Sub(oldest.since) >= busyAge {
		return true, oldest
	}
	return true, nil
}

func (s *incoming) heard(public, host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.public, s.host, s.spoke = public, host, true
}

func (s *incoming) hasSpoken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spoke
}
