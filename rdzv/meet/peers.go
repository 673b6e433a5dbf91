package meet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"rdzv/rdzv/internal/placement"
	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
)

// orderOf returns the order of an agent among those that may host, see before.
func orderOf(nodeRank int, host string) (o gate.Order) {
	binary.BigEndian.PutUint32(o[:], uint32(nodeRank)) // -1 is the last one
	copy(o[4:], host)
	return o
}

// before reports whether the agent with the first id is before that with the second one: in the
// order of node ranks, if there are any, and then of the names of hosts, as their ranks will be.
// Names that are longer than an Order and begin alike are equal.
func before(a, b string) bool {
	var x, y gate.Instance
	if len(a) != hex.EncodedLen(len(x)) || len(b) != len(a) {
		return false
	}
	hex.Decode(x[:], []byte(a))
	hex.Decode(y[:], []byte(b))
	const order = len(gate.Order{})
	host := func(i gate.Instance) string { return string(bytes.TrimRight(i[4:order], "\x00")) }
	return cmp.Or(
		bytes.Compare(x[:4], y[:4]), placement.NaturalOrder(host(x), host(y)),
		bytes.Compare(x[order:], y[order:]),
	) < 0
}

// peers sends this agent's beacons and evaluates those of the other agents.
//
// It also sends beacons of the agent to which this one is connected: there may be others that do
// not receive those of that agent.
//
// A beacon may be an old one that somebody has sent again, so all that follows from it is an
// attempt to connect to the addresses in it. Whether an agent is there, and its id, is what the
// handshake shows.
type peers struct {
	multicast  multicast
	rejections *rejections
	socket     *beacon.Socket // the zero value without multicast
	start      time.Time
	better     chan beacon.Beacon // of agents to which this one should connect
	newcomer   chan struct{}      // contains an element if another agent is new

	mu      sync.Mutex
	self    beacon.Beacon
	waits   map[netip.AddrPort]beacon.Beacon // of the agents for which this one waits
	best    beacon.Beacon                    // the one that should host; no ID if there is none
	found   bool                             // best hosts, and has admitted this agent
	elected bool                             // this agent is to host
	since   time.Time                        // when elect began to wait for the rest
	last    string                           // the last standing.better
	heard   string                           // the sender of the last beacon of this job
	heardAt time.Time
	known   map[string]bool         // ids in beacons; true if one said that it hosts
	others  map[string]*Disappeared // agents that are or were connected to this one, by their hosts
}

func newPeers(m multicast, r *rejections, own *Meeting) *peers {
	return &peers{
		multicast: m, rejections: r, start: time.Now(), self: m.beacon(false, own),
		better: make(chan beacon.Beacon, maxDialing), socket: &beacon.Socket{},
		newcomer: make(chan struct{}, 1), waits: map[netip.AddrPort]beacon.Beacon{},
		known: map[string]bool{}, others: map[string]*Disappeared{},
	}
}

// announce sends beacons until ctx ends.
func (p *peers) announce(ctx context.Context) {
	sendRepeatedly(ctx, p.newcomer, func() {
		for _, packet := range p.packets() {
			p.socket.Send(packet)
		}
	})
}

// packets returns the beacons that this agent sends now.
func (p *peers) packets() (list [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.found {
		list = append(list, p.self.Encode(p.multicast.key))
	}
	if p.best.ID != "" {
		list = append(list, p.best.Encode(p.multicast.key))
	}
	return list
}

// setHosting makes the following beacons announce this agent as the host.
func (p *peers) setHosting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.self.Hosting, p.best = true, beacon.Beacon{}
}

// setFound makes the following beacons announce the store that another agent hosts, on that host.
func (p *peers) setFound(store *Meeting, host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found, p.best = true, p.multicast.beacon(true, store)
	p.best.Host = host
}

// receive evaluates one beacon. It drops it if the search is behind; the other agent sends its
// beacon again.
func (p *peers) receive(packet beacon.Packet) {
	b, err := p.multicast.parse(packet, func(r gate.Rejection) { p.rejections.add(r) })
	p.mu.Lock()
	defer p.mu.Unlock()
	hosting, known := p.known[b.ID]
	seeking := !p.self.Hosting && !p.found
	switch {
	case errors.Is(err, gate.ErrDifferentJob):
		if seeking && !b.Hosting && time.Since(p.start) > differentJobAfter {
			p.rejections.add(gate.Rejection{Host: b.Host, Addr: senderOf(b, packet), Reason: err})
		}
		return
	case err != nil || b.ID == p.self.ID || p.found:
		return
	case seeking && (b.Hosting || !p.best.Hosting && before(b.ID, cmp.Or(p.best.ID, p.self.ID))):
		select {
		case p.better <- b:
		default:
		}
	case p.best.ID == "" && !known: // it should hear soon of this agent
		select {
		case p.newcomer <- struct{}{}:
		default:
		}
	}
	if len(p.known) == maxSenders {
		clear(p.known)
	}
	p.known[b.ID] = hosting || b.Hosting
	if b.Hosting && !hosting {
		p.chooseBest()
	}
	p.heard, p.heardAt = hostAndAddr(b.Host, senderOf(b, packet)), time.Now()
}

// senderOf returns the address of the agent in a beacon, which may differ from that of the packet:
// somebody else may have sent it.
func senderOf(b beacon.Beacon, packet beacon.Packet) netip.Addr {
	own := func(a netip.AddrPort) bool { return a.Addr().WithZone("") == packet.From.WithZone("") }
	if !slices.ContainsFunc(b.Addrs, own) {
		return b.Addrs[0].Addr()
	}
	return packet.From
}

// candidates is the source of the addresses of agents to which this one should connect.
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

// noteConnected notes which agents are connected to this one, or were until this moment.
func (p *peers) noteConnected(clients []gate.Client) {
	see := func(id, host string, addr netip.Addr) {
		if id != p.self.ID {
			p.others[host] = &Disappeared{Host: host, Addr: addr, seen: time.Now()}
		}
	}
	for _, c := range clients {
		see(c.ID, c.Host, c.Addr)
	}
	for addr, b := range p.waits {
		see(b.ID, b.Host, addr.Addr())
	}
}

// disappearedAfter is how long an agent must have been without a connection before this is
// reported.
const disappearedAfter = 3 * time.Second

// disappeared returns the agents to which there is no connection any more, each once.
func (p *peers) disappeared(clients []gate.Client) (list []Disappeared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noteConnected(clients)
	for _, d := range p.others {
		if d.Ago == 0 && time.Since(d.seen) >= disappearedAfter {
			d.Ago = time.Since(d.seen)
			list = append(list, *d)
		}
	}
	return list
}

// connected returns the hosts of the agents that are connected to this one.
func (p *peers) connected() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for host, d := range p.others {
		if time.Since(d.seen) < disappearedAfter {
			list = append(list, host)
		}
	}
	slices.Sort(list)
	return list
}

// lastHeard returns the sender of the last beacon of this job, "" if there was none, and how long
// ago it was received.
func (p *peers) lastHeard() (sender string, ago time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard, time.Since(p.heardAt)
}
