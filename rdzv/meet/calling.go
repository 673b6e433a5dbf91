package meet

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
)

// How often a beacon is sent: often at first, when all agents start, then seldom.
const (
	callFirst = 50 * time.Millisecond
	callLast  = time.Second
)

// beaconsAfter is how long other sources have before beacons are listened to.
const beaconsAfter = 200 * time.Millisecond

// tune opens the radio on the interfaces that a store would listen on: on loopback when there is no other.
func (s *session) tune(ctx context.Context) (*beacon.Socket, error) {
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
	return beacon.Open(ctx, list, s.PortLo)
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
		r.Listen(func(h beacon.Packet) {
			if b, err := s.understand(h, p); err == nil && b.Hosting {
				offerBeacon(give, b)
			}
		})
		<-ctx.Done()
		r.Close()
	}
}

// understand reads a beacon of this job. One that another secret has made for the very same job is told to the user; one of
// another job of the same user is ErrOtherJob.
func (s *session) understand(h beacon.Packet, p *plan) (beacon.Beacon, error) {
	b, err := beacon.Parse(h.Data, p.beacon)
	ours := b.Public == publicHex(p.public)
	switch {
	case errors.Is(err, beacon.ErrMAC) && ours:
		s.strange(Stranger{Host: b.Host, Addr: h.From, Why: ErrOtherToken}, p)
	case err == nil && !ours:
		err = ErrOtherJob
	}
	for i, a := range b.Addrs { // of use only on the interface that it came by
		if a.Addr().Is6() && a.Addr().IsLinkLocalUnicast() {
			b.Addrs[i] = netip.AddrPortFrom(a.Addr().WithZone(h.Zone), a.Port())
		}
	}
	return b, err
}

// offerBeacon gives the addresses of a beacon in the host's own order, so that all come in by the same.
func offerBeacon(give func(offer), b beacon.Beacon) {
	for i, a := range b.Addrs {
		give(offer{addr: a, name: b.Host, likely: i})
	}
}

// announce calls out where this host's store is, until the meeting is closed or the job is agreed.
func (m *Meeting) announce(ctx context.Context) {
	r, err := m.session.tune(ctx)
	if err != nil {
		return
	}
	defer r.Close()
	b := beacon.Beacon{Hosting: true, Public: publicHex(m.plan.public), ID: beacon.NewID(), Host: m.session.Host, Addrs: m.Addrs}
	packet := b.Encode(m.plan.beacon)
	for wait := callFirst; ctx.Err() == nil; wait = min(wait*3/2, callLast) {
		r.Send(packet)
		pause(ctx, wait)
	}
}
