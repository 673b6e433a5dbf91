package meet

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
)

// peerLifetime is how long an agent is assumed to exist after its last beacon.
const peerLifetime = 3 * time.Second

// peers sends this agent's beacons and evaluates those of the other agents. An agent that hosts is
// better than one that does not; of two that do, or two that do not, the one with the lower id is.
type peers struct {
	multicast  multicast
	rejections *rejections
	socket     *beacon.Socket // the zero value without multicast
	start      time.Time

	mu         sync.Mutex
	self       beacon.Beacon
	betterSeen time.Time // last beacon of a better agent
	heard      string    // the sender of the last beacon of this job

	better     chan candidate     // addresses of better agents
	otherHosts chan beacon.Beacon // beacons of better hosts, while this agent hosts
}

func newPeers(m multicast, r *rejections, addrs []netip.AddrPort) *peers {
	return &peers{
		multicast: m, rejections: r, start: time.Now(), self: m.beacon(false, addrs),
		better: make(chan candidate, maxDialing), otherHosts: make(chan beacon.Beacon, 1),
		socket: &beacon.Socket{},
	}
}

// announce sends this agent's beacon until ctx ends.
func (p *peers) announce(ctx context.Context) {
	sendRepeatedly(ctx, func() {
		p.mu.Lock()
		packet := p.self.Encode(p.multicast.key)
		p.mu.Unlock()
		p.socket.Send(packet)
	})
}

// setHosting makes the following beacons announce this agent as the host.
func (p *peers) setHosting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.self.Hosting = true
}

// differentJobAfter is how long an agent must have been without a host before it reports an agent
// of another job of the same user: the user may have intended them to be one job.
const differentJobAfter = 2 * time.Second

// receive evaluates one beacon. It drops results for which a channel has no space; the other agent
// sends its beacon again.
func (p *peers) receive(packet beacon.Packet) {
	b, err := p.multicast.parse(packet, p.rejections.add)
	p.mu.Lock()
	self := p.self
	better := err == nil && b.ID != self.ID &&
		(b.Hosting && !self.Hosting || b.Hosting == self.Hosting && b.ID < self.ID)
	if better {
		p.betterSeen = time.Now()
	}
	if err == nil && b.ID != self.ID {
		p.heard = hostAndAddr(b.Host, packet.From)
	}
	p.mu.Unlock()
	noHost := !b.Hosting && !self.Hosting && time.Since(p.start) > differentJobAfter
	switch {
	case errors.Is(err, gate.ErrDifferentJob) && noHost:
		p.rejections.add(gate.Rejection{Host: b.Host, Addr: packet.From, Reason: err})
	case better && self.Hosting:
		select {
		case p.otherHosts <- b:
		default:
		}
	case better:
		addBeacon(func(c candidate) {
			select {
			case p.better <- c:
			default:
			}
		}, b)
	}
}

// knowsBetter reports whether a better agent is assumed to exist.
func (p *peers) knowsBetter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.betterSeen) < peerLifetime
}

// lastHeard returns the sender of the last beacon of this job, "" if there was none.
func (p *peers) lastHeard() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard
}

// candidates is the source of the addresses of better agents.
func (p *peers) candidates(ctx context.Context, add func(candidate)) {
	for {
		select {
		case c := <-p.better:
			add(c)
		case <-ctx.Done():
			return
		}
	}
}
