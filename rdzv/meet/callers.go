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

// forget is how long an agent counts that has not called any more.
const forget = 3 * time.Second

// callers is what one agent hears of the others.
type callers struct {
	multicast multicast
	strangers *strangers
	socket    *beacon.Socket // nil where there is no multicast
	self      beacon.Beacon  // with where this agent would host

	mu     sync.Mutex
	better map[string]time.Time // by id: when one that is better was heard last
	start  time.Time            // when it began

	offers chan offer         // addresses of those that are better
	rivals chan beacon.Beacon // of others that host, while this agent does
}

func newCallers(m multicast, s *strangers, addrs []netip.AddrPort) *callers {
	return &callers{
		multicast: m, strangers: s, better: map[string]time.Time{}, start: time.Now(),
		offers: make(chan offer, maxOpen), rivals: make(chan beacon.Beacon, 1),
		self: m.self(false, addrs),
	}
}

func (c *callers) quit() {
	if c.socket != nil {
		c.socket.Close()
	}
}

// call sends this agent's beacon again and again.
func (c *callers) call(ctx context.Context) {
	callRepeatedly(ctx, c.say)
}

func (c *callers) say() {
	if c.socket == nil {
		return
	}
	c.mu.Lock()
	packet := c.self.Encode(c.multicast.key)
	c.mu.Unlock()
	c.socket.Send(packet)
}

// maxBetter bounds what an agent remembers of the others.
const maxBetter = 4096

// otherLineAfter is how long an agent is alone before it takes another job of the same user for a
// mistake.
const otherLineAfter = 2 * time.Second

// hear takes in one beacon.
func (c *callers) hear(h beacon.Packet) {
	b, err := c.multicast.understand(h, c.strangers.tell)
	if errors.Is(err, gate.ErrDifferentJob) && c.bothAlone(b) {
		c.strangers.tell(gate.Rejection{Host: b.Host, Addr: h.From, Reason: gate.ErrDifferentJob})
	}
	if err != nil || b.ID == c.self.ID {
		return
	}
	switch better, hosting := c.weigh(b); {
	case better && hosting:
		select {
		case c.rivals <- b:
		default: // it calls again
		}
	case better:
		offerBeacon(c.offer, b)
	}
}

func (c *callers) bothAlone(b beacon.Beacon) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !b.Hosting && !c.self.Hosting && time.Since(c.start) > otherLineAfter
}

// weigh says whether another agent is better, and whether this one hosts. A host is better than one
// that seeks; of two alike, the lower id is.
func (c *callers) weigh(b beacon.Beacon) (better, hosting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	better = b.Hosting && !c.self.Hosting || b.Hosting == c.self.Hosting && b.ID < c.self.ID
	if better && len(c.better) < maxBetter {
		c.better[b.ID] = time.Now()
	}
	return better, c.self.Hosting
}

func (c *callers) offer(o offer) {
	select {
	case c.offers <- o:
	default: // it calls again
	}
}

func (c *callers) knowsBetter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.better {
		if time.Since(t) < forget {
			return true
		}
	}
	return false
}

// known offers those that are better.
func (c *callers) known(ctx context.Context, give func(offer)) {
	for {
		select {
		case o := <-c.offers:
			give(o)
		case <-ctx.Done():
			return
		}
	}
}

// becomeHost makes this agent call itself the host from now on.
func (c *callers) becomeHost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.self.Hosting = true
}
