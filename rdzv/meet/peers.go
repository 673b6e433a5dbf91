package meet

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
)

// peers sends this agent's beacons and evaluates those of the other agents. An agent that hosts is
// better than one that does not; of two that do, or two that do not, the one with the lower id is.
//
// A beacon may be an old one that somebody has sent again, so all that follows from it is an
// attempt to connect to the addresses of an agent that seems to be better. Whether an agent is
// there, and its id, is what the handshake shows.
type peers struct {
	multicast  multicast
	rejections *rejections
	socket     *beacon.Socket // the zero value without multicast
	start      time.Time
	better     chan beacon.Beacon // of agents that seem to be better
	newcomer   chan struct{}      // contains an element if a worse agent is new

	mu        sync.Mutex
	self      beacon.Beacon
	heard     string // the sender of the last beacon of this job
	heardAt   time.Time
	waits     bool                    // for the greeting of a better agent
	verifying time.Time               // until when the search may be connecting to a better agent
	known     map[string]bool         // ids in beacons; true if the agent hosts
	others    map[string]*Disappeared // the other agents, by the names of their hosts
}

func newPeers(m multicast, r *rejections, own *Meeting) *peers {
	return &peers{
		multicast: m, rejections: r, start: time.Now(), self: m.beacon(false, own),
		better: make(chan beacon.Beacon, maxDialing), socket: &beacon.Socket{},
		newcomer: make(chan struct{}, 1),
		known:    map[string]bool{}, others: map[string]*Disappeared{},
	}
}

// newcomerDelay limits how often an agent answers newcomers.
const newcomerDelay = 5 * time.Millisecond

// announce sends this agent's beacon until ctx ends, and at once to newcomers, which might
// otherwise host before they have heard of this agent.
func (p *peers) announce(ctx context.Context) {
	for wait := beaconFirst; ctx.Err() == nil; wait = min(wait*3/2, beaconLast) {
		p.mu.Lock()
		packet := p.self.Encode(p.multicast.key)
		p.mu.Unlock()
		p.socket.Send(packet)
		next := time.NewTimer(wait)
		select {
		case <-next.C:
		case <-p.newcomer:
			pause(ctx, newcomerDelay)
		case <-ctx.Done():
		}
		next.Stop()
	}
}

// setHosting makes the following beacons announce this agent as the host.
func (p *peers) setHosting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.self.Hosting = true
}

// receive evaluates one beacon. It drops it if the search is behind; the other agent sends its
// beacon again.
func (p *peers) receive(packet beacon.Packet) {
	b, err := p.multicast.parse(packet, func(r gate.Rejection) { p.rejections.add(r) })
	p.mu.Lock()
	self := p.self
	better := err == nil &&
		(b.Hosting && !self.Hosting || b.Hosting == self.Hosting && p.precedes(b.ID))
	if err == nil && b.ID != self.ID {
		p.heard, p.heardAt = hostAndAddr(b.Host, senderOf(b, packet)), time.Now()
	}
	isNew := err == nil && p.isNew(b)
	p.mu.Unlock()
	noHost := !b.Hosting && !self.Hosting && time.Since(p.start) > differentJobAfter
	switch {
	case errors.Is(err, gate.ErrDifferentJob) && noHost:
		p.rejections.add(gate.Rejection{Host: b.Host, Addr: senderOf(b, packet), Reason: err})
	case better:
		select {
		case p.better <- b:
		default:
		}
	case isNew && b.ID != self.ID:
		select {
		case p.newcomer <- struct{}{}:
		default:
		}
	}
}

// isNew notes the id in a beacon, and reports whether it was not known. An agent that hosts does so
// until it ends, whatever older beacon of it is sent again.
func (p *peers) isNew(b beacon.Beacon) bool {
	hosting, known := p.known[b.ID]
	if !known && len(p.known) == maxSenders {
		clear(p.known)
	}
	p.known[b.ID] = hosting || b.Hosting
	return !known
}

// count returns how many agents of the job have sent a beacon, or are this one.
func (p *peers) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.known)
	if _, own := p.known[p.self.ID]; !own {
		n++
	}
	return n
}

// senderOf returns the address of an authenticated beacon's sender, which may differ from that of
// the packet if somebody else has sent it again.
func senderOf(b beacon.Beacon, packet beacon.Packet) netip.Addr {
	own := func(a netip.AddrPort) bool { return a.Addr().WithZone("") == packet.From.WithZone("") }
	if !slices.ContainsFunc(b.Addrs, own) {
		return b.Addrs[0].Addr()
	}
	return packet.From
}

// candidates is the source of the addresses of agents that seem to be better.
func (p *peers) candidates(ctx context.Context, add func(candidate)) {
	for seen := (senders{}); ; {
		select {
		case b := <-p.better:
			seen.add(b, add)
		case <-ctx.Done():
			return
		}
	}
}

// connectLimit is how long an agent does not host because it is connecting to one that seems to be
// better, and verifyLimit how long because of the handshake, and for all of them together.
const (
	connectLimit = 100 * time.Millisecond
	verifyLimit  = 400 * time.Millisecond
)

// note notes for which agents the search waits.
func (p *peers) note(ts targets) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits, p.verifying = false, time.Time{}
	for _, t := range ts {
		if t.waitsFor == (gate.Instance{}) {
			until := t.started.Add(connectLimit)
			if t.connected {
				until = t.started.Add(verifyLimit)
			}
			if t.dialing && t.timeouts == 0 && until.After(p.verifying) {
				p.verifying = until
			}
			continue
		}
		id := t.waitsFor.String()
		p.waits = p.waits || p.precedes(id) || p.known[id]
		p.see(gate.Client{ID: id, Host: t.name, Addr: t.addr.Addr()})
	}
}

// see notes that an agent is, or was at this moment, connected to this one.
func (p *peers) see(c gate.Client) {
	if c.ID != p.self.ID {
		p.others[c.Host] = &Disappeared{Host: c.Host, Addr: c.Addr, seen: time.Now()}
	}
}

// disappearedAfter is how long an agent must have been without a connection before this is
// reported.
const disappearedAfter = 3 * time.Second

// disappeared returns the agents to which there is no connection any more, each once.
func (p *peers) disappeared() (list []Disappeared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.others {
		if d.Ago == 0 && time.Since(d.seen) >= disappearedAfter {
			d.Ago = time.Since(d.seen)
			list = append(list, *d)
		}
	}
	return list
}

// precedes reports whether an id is that of a better agent, of two that both host or both do not.
func (p *peers) precedes(id string) bool {
	return len(id) == len(p.self.ID) && id < p.self.ID
}

// accepts reports whether this agent, or the job that it hosts, should move to that store.
func (p *peers) accepts(store gate.Instance) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.self.Hosting || p.precedes(store.String())
}

// electionState returns what an agent must know before it hosts.
func (p *peers) electionState(clients []gate.Client) (s electionState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s = electionState{better: p.waits, verifying: time.Now().Before(p.verifying)}
	for _, c := range clients {
		p.see(c)
		s.better = s.better || c.Waiting && p.precedes(c.ID)
		s.clients = s.clients || c.Waiting && c.ID != p.self.ID && !p.precedes(c.ID)
	}
	return s
}

// electionState is this agent's position among those that it is connected to.
type electionState struct {
	clients   bool // others wait for this agent
	better    bool // there is a better one
	verifying bool // there may be a better one
}

// lastHeard returns the sender of the last beacon of this job, "" if there was none, and how long
// ago it was received.
func (p *peers) lastHeard() (sender string, ago time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard, time.Since(p.heardAt)
}
