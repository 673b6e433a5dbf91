package gate

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
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
	since      time.Time
	public     string // public name of the job that the client has named
	host       string // the name that the client gives its host, not verified
	id         string // that it gives itself, see NewDialer; verified after the handshake
	identified atomic.Bool
}

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
		select {
		case <-p.freed:
		case <-time.After(silentLimit / 4):
		case <-ctx.Done():
		}
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
		if !s.identified.Load() && now.Sub(s.since) >= silentLimit {
			return true, s
		}
	}
	if oldest := p.conns[0]; now.Sub(oldest.since) >= busyLimit {
		return true, oldest
	}
	return true, nil
}

// identify is called during the handshake, whose goroutine alone uses public and host.
func (s *incoming) identify(public, host, id string) {
	s.public, s.host, s.id = public, host, id
	s.identified.Store(true)
}
