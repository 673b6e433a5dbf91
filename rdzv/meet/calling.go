package meet

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"
)

// How often a beacon is sent: often at first, when all agents start, then seldom.
const (
	callFirst = 50 * time.Millisecond
	callLast  = time.Second
)

// beaconsAfter is how long other sources have before beacons are listened to.
const beaconsAfter = 200 * time.Millisecond

// tune opens the radio on the interfaces that a store would listen on: on loopback when there is no other.
func (s *session) tune(ctx context.Context) (*radio, error) {
	list, err := s.here()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		all, err := s.Interfaces()
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(all, func(i Interface) bool { return !i.Loopback })
	}
	return openRadio(ctx, list, s.PortLo)
}

// beacons offers the store whose host calls out.
func (s *session) beacons(p *plan) source {
	return func(ctx context.Context, give func(offer)) {
		if !pause(ctx, beaconsAfter) {
			return
		}
		r, err := s.tune(ctx)
		if err != nil {
			return
		}
		r.listen(func(h heardPacket) {
			if b, err := s.understand(h, p); err == nil && b.hosting {
				b.offer(give)
			}
		})
		<-ctx.Done()
		r.close()
	}
}

// understand reads a beacon of this job. One that another secret has made for the very same job is told to the user; one of
// another job of the same user is ErrOtherJob.
func (s *session) understand(h heardPacket, p *plan) (beacon, error) {
	b, err := parseBeacon(h.packet, p.beacon)
	ours := b.public == publicHex(p.public)
	switch {
	case errors.Is(err, errBeaconMAC) && ours:
		s.strange(Stranger{Host: b.host, Addr: h.from, Why: ErrOtherToken}, p)
	case err == nil && !ours:
		err = ErrOtherJob
	}
	for i, a := range b.addrs { // of use only on the interface that it came by
		if a.Addr().Is6() && a.Addr().IsLinkLocalUnicast() {
			b.addrs[i] = netip.AddrPortFrom(a.Addr().WithZone(h.zone), a.Port())
		}
	}
	return b, err
}

// offer gives the addresses of a beacon in the host's own order, so that all come in by the same.
func (b beacon) offer(give func(offer)) {
	for i, a := range b.addrs {
		give(offer{addr: a, name: b.host, likely: i})
	}
}

// announce calls out where this host's store is, until the meeting is closed or the job is agreed.
func (m *Meeting) announce(ctx context.Context) {
	r, err := m.session.tune(ctx)
	if err != nil {
		return
	}
	defer r.close()
	b := beacon{hosting: true, public: publicHex(m.plan.public), id: newID(), host: m.session.Host, addrs: m.Addrs}
	packet := b.encode(m.plan.beacon)
	for wait := callFirst; ctx.Err() == nil; wait = min(wait*3/2, callLast) {
		r.send(packet)
		pause(ctx, wait)
	}
}
