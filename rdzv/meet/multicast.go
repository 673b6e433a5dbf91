package meet

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
)

// The first and the longest interval between two beacons. The interval grows, because most agents
// start at the same time.
const (
	beaconFirst = 50 * time.Millisecond
	beaconLast  = 250 * time.Millisecond
)

// beaconDelay is how long a search waits for its other sources before it opens a multicast socket.
const beaconDelay = 200 * time.Millisecond

// differentJobAfter is how long an agent must have been without a host before it reports an agent
// of another job of the same user: the user may have intended them to be one job.
const differentJobAfter = 2 * time.Second

// multicast sends and receives the beacons of one job.
type multicast struct {
	config *Config
	public string // public name of the job, in hexadecimal
	key    []byte // for the MAC of beacons
}

// beacon returns a beacon of this agent.
func (m multicast) beacon(hosting bool, own *Meeting) beacon.Beacon {
	return beacon.Beacon{
		Hosting: hosting, Public: m.public, ID: own.id.String(),
		Host: m.config.Host, Addrs: own.Addrs,
	}
}

// announce sends beacons with the store's addresses until ctx ends.
func (m multicast) announce(ctx context.Context, store *Meeting) {
	s, err := m.config.openMulticast(ctx)
	if err != nil {
		return
	}
	defer s.Close()
	packet := m.beacon(true, store).Encode(m.key)
	sendRepeatedly(ctx, nil, func() { s.Send(packet) })
}

// newcomerDelay limits how often an agent answers newcomers.
const newcomerDelay = 5 * time.Millisecond

// sendRepeatedly calls send until ctx ends, and at once for newcomers.
func sendRepeatedly(ctx context.Context, newcomer <-chan struct{}, send func()) {
	for wait := beaconFirst; ctx.Err() == nil; wait = min(wait*3/2, beaconLast) {
		send()
		next := time.NewTimer(wait)
		select {
		case <-next.C:
		case <-newcomer:
			pause(ctx, newcomerDelay)
		case <-ctx.Done():
		}
		next.Stop()
	}
}

// hosts is the source of the addresses in beacons of agents that host.
func (m multicast) hosts(report func(gate.Rejection)) source {
	return func(ctx context.Context, add func(candidate)) {
		seen := senders{}
		m.receive(ctx, beaconDelay, func(p beacon.Packet) {
			if b, err := m.parse(p, report); err == nil && b.Hosting {
				seen.add(b, add)
			}
		})
	}
}

// otherHosts is a source without addresses, for an agent that searches at the host that --store
// names. It calls found for agents of this user that host a store: one there of another job, or one
// elsewhere of the same job. The user may have intended them to be one job, whose agents use the
// same ports only if they run the same command.
func (m multicast) otherHosts(
	host string, found func(context.Context, beacon.Beacon, gate.Rejection),
) source {
	return func(ctx context.Context, _ func(candidate)) {
		m.receive(ctx, differentJobAfter, func(p beacon.Packet) {
			b, err := m.parse(p, func(gate.Rejection) {})
			r := gate.Rejection{Host: b.Host, Addr: p.From, Reason: err}
			switch {
			case !b.Hosting:
			case errors.Is(err, gate.ErrDifferentJob) && isAt(b, host):
				found(ctx, b, r)
			case err == nil && m.config.isElsewhere(ctx, b, host):
				r.Reason = errOtherStore
				found(ctx, b, r)
			}
		})
	}
}

// isAt reports whether the sender of a beacon is the host with that name or address.
func isAt(b beacon.Beacon, host string) bool {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return sameHost(b.Host, host)
	}
	return slices.ContainsFunc(b.Addrs, func(ap netip.AddrPort) bool { return ap.Addr() == a })
}

// isElsewhere reports whether the agent with that beacon is not on the host that Config.Store
// names, whose name may be one that only a resolver knows, perhaps later.
func (c *Config) isElsewhere(ctx context.Context, b beacon.Beacon, host string) bool {
	if isAt(b, host) {
		return false
	}
	resolving, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	addrs, err := c.resolve(resolving, host)
	own := addressesOf(b.Addrs)
	there := func(a netip.Addr) bool { return slices.Contains(own, a) }
	return err == nil && !slices.ContainsFunc(addrs, there)
}

// receive passes packets to f, from after the delay until ctx ends.
func (m multicast) receive(ctx context.Context, delay time.Duration, f func(beacon.Packet)) {
	if !pause(ctx, delay) {
		return
	}
	s, err := m.config.openMulticast(ctx)
	if err != nil {
		return
	}
	s.Receive(f)
	<-ctx.Done()
	s.Close()
}

// parse parses a beacon of this job. It reports an agent of this job with a different secret or
// version. For another job of the same user the error is gate.ErrDifferentJob.
func (m multicast) parse(p beacon.Packet, report func(gate.Rejection)) (beacon.Beacon, error) {
	b, err := beacon.Parse(p.Data, m.key)
	sameJob := b.Public == m.public
	version, isVersion := errors.AsType[*protocol.VersionError](err)
	switch {
	case isVersion && sameJob:
		report(gate.Rejection{Host: b.Host, Addr: p.From, Reason: version})
	case errors.Is(err, beacon.ErrMAC) && sameJob:
		report(gate.Rejection{Host: b.Host, Addr: p.From, Reason: gate.ErrDifferentToken})
	case err == nil && !sameJob:
		err = gate.ErrDifferentJob
	}
	for i, a := range b.Addrs { // link-local addresses are valid on the receiving interface only
		if a.Addr().Is6() && a.Addr().IsLinkLocalUnicast() {
			b.Addrs[i] = netip.AddrPortFrom(a.Addr().WithZone(p.Zone), a.Port())
		}
	}
	return b, err
}

// senders are the addresses of the beacons that a search has received, per agent. Every agent
// repeats its beacon, and somebody else may send recorded ones at any rate.
type senders map[sender]bool

type sender struct {
	id   string
	addr netip.AddrPort
}

// maxSenders limits the memory of a search. When that is exceeded, all senders are new again.
const maxSenders = 4096

// add adds the addresses of a beacon that are new, with priorities in the sender's order, so that
// all agents use the same address of the store if possible.
func (ss senders) add(b beacon.Beacon, add func(candidate)) {
	for i, a := range b.Addrs {
		if s := (sender{b.ID, a}); !ss[s] {
			if len(ss) == maxSenders {
				clear(ss)
			}
			ss[s] = true
			add(candidate{addr: a, name: b.Host, priority: i})
		}
	}
}
