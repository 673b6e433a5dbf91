package meet

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
)

// How often a beacon is sent: more often at first, when all agents start.
const (
	callFirst = 50 * time.Millisecond
	callLast  = 250 * time.Millisecond
)

// beaconsAfter is how long other sources have before beacons are listened to.
const beaconsAfter = 200 * time.Millisecond

// A multicast is how the agents of one job make themselves known on the local network.
type multicast struct {
	open   func(context.Context) (*beacon.Socket, error)
	public string // the job's public name, in hex
	key    []byte // of the job's beacons
	host   string // this host's name
}

// self is a beacon of this agent.
func (m multicast) self(hosting bool, addrs []netip.AddrPort) beacon.Beacon {
	return beacon.Beacon{Hosting: hosting, Public: m.public, ID: beacon.NewID(), Host: m.host, Addrs: addrs}
}

// announce calls out where this host's store is, until ctx ends.
func (m multicast) announce(ctx context.Context, addrs []netip.AddrPort) {
	r, err := m.open(ctx)
	if err != nil {
		return
	}
	defer r.Close()
	packet := m.self(true, addrs).Encode(m.key)
	callRepeatedly(ctx, func() { r.Send(packet) })
}

func callRepeatedly(ctx context.Context, send func()) {
	for wait := callFirst; ctx.Err() == nil; wait = min(wait*3/2, callLast) {
		send()
		pause(ctx, wait)
	}
}

// stores offers the store whose host calls out; told hears of strangers.
func (m multicast) stores(told func(gate.Rejection)) source {
	return func(ctx context.Context, give func(offer)) {
		if !pause(ctx, beaconsAfter) {
			return
		}
		r, err := m.open(ctx)
		if err != nil {
			return
		}
		r.Receive(func(h beacon.Packet) {
			if b, err := m.understand(h, told); err == nil && b.Hosting {
				offerBeacon(give, b)
			}
		})
		<-ctx.Done()
		r.Close()
	}
}

// understand reads a beacon of this job. One that another secret has made for the very same job is
// told to the user; one of another job of the same user is gate.ErrDifferentJob.
func (m multicast) understand(h beacon.Packet, told func(gate.Rejection)) (beacon.Beacon, error) {
	b, err := beacon.Parse(h.Data, m.key)
	ours := b.Public == m.public
	switch {
	case errors.Is(err, beacon.ErrMAC) && ours:
		told(gate.Rejection{Host: b.Host, Addr: h.From, Reason: gate.ErrDifferentToken})
	case err == nil && !ours:
		err = gate.ErrDifferentJob
	}
	for i, a := range b.Addrs { // of use only on the interface that it came by
		if a.Addr().Is6() && a.Addr().IsLinkLocalUnicast() {
			b.Addrs[i] = netip.AddrPortFrom(a.Addr().WithZone(h.Zone), a.Port())
		}
	}
	return b, err
}

// offerBeacon gives the addresses of a beacon in the host's own order, so that all come in by the
// same.
func offerBeacon(give func(offer), b beacon.Beacon) {
	for i, a := range b.Addrs {
		give(offer{addr: a, name: b.Host, likely: i})
	}
}
