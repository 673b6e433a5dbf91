package meet

import (
	"cmp"
	"net/netip"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
)

// restTimeout is how long an agent for which more than half of the job waits lets it wait for the
// rest, before it hosts and can say who is missing. It is shorter than noPeerAfter.
const restTimeout = 2 * time.Second

// elect decides whether this agent hosts, with the clients of its gate.
//
// Others decide at the same time. At once, only the first of all can host. After restTimeout, one
// that has just met a better one lets that decide before it. One that waits for another one which
// has said that it hosts does not host, however long that one needs to start the store. And an
// agent that has been elected waits for no other from then on: see waitFor.
func (p *peers) elect(clients []gate.Client, size int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noteConnected(clients)
	if p.best.Hosting {
		return false
	}
	s, limit := p.standing(clients), restTimeout
	if s.better != "" { // which may be frozen, or not reachable by those that wait for this agent
		limit = 2 * restTimeout
	}
	isNew := s.better != "" && s.better != p.last
	p.last = s.better
	switch agents := 1 + s.waiting; {
	case agents >= size && s.better == "":
		p.elected = true
	case !s.joined && agents <= size/2:
		p.since = time.Time{}
	case p.since.IsZero() || isNew:
		p.since = time.Now()
	case time.Since(p.since) >= limit:
		p.elected = true
	}
	return p.elected
}

// standing is what an agent must know before it hosts.
type standing struct {
	waiting int    // the number of agents that wait for this one
	joined  bool   // one of them has RDZV_JOIN of this agent, and can find no other
	better  string // the first of the agents before this one that are connected to it; "" if none
}

func (p *peers) standing(clients []gate.Client) (s standing) {
	s.better = p.best.ID
	ids := map[string]bool{p.self.ID: true}
	for _, c := range clients {
		if !c.Waiting || ids[c.ID] {
			continue
		}
		s.waiting++
		s.joined = s.joined || c.ID == ""
		ids[c.ID] = c.ID != ""
		if before(c.ID, cmp.Or(s.better, p.self.ID)) {
			s.better = c.ID
		}
	}
	return s
}

// waitFor notes that this agent waits for another one. It is called before that one can know it, so
// it counts no agent that has been elected: for such a one waitFor fails. Without an election p is
// nil.
func (p *peers) waitFor(id gate.Instance, host string, addr netip.AddrPort) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.elected {
		return errElected
	}
	p.waits[addr] = beacon.Beacon{
		Public: p.self.Public, ID: id.String(), Host: host, Addrs: []netip.AddrPort{addr},
	}
	p.chooseBest()
	return nil
}

// waitNoMore notes that the attempt to connect to that address has ended.
func (p *peers) waitNoMore(addr netip.AddrPort) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waits, addr)
	p.chooseBest()
}

// chooseBest determines which of the agents for which this one waits should host: one that has said
// that it does, or else the first of those before this one.
func (p *peers) chooseBest() {
	if p.self.Hosting || p.found {
		return
	}
	p.best = beacon.Beacon{}
	for _, b := range p.waits {
		b.Hosting = p.known[b.ID]
		first := b.Hosting == p.best.Hosting && before(b.ID, cmp.Or(p.best.ID, p.self.ID))
		if first || b.Hosting && !p.best.Hosting {
			p.best = b
		}
	}
}
