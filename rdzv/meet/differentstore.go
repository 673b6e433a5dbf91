package meet

import (
	"context"
	"net/netip"
	"slices"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
)

// reportOtherHosts reports other agents that host a store, until ctx ends, to an agent that hosts
// one because Config.Store names its host: those of the same job, and those with another token.
func (l *locator) reportOtherHosts(ctx context.Context, p *plan) {
	p.multicast.receive(ctx, differentJobAfter, func(packet beacon.Packet) {
		b, err := p.multicast.parse(packet, l.reporter(p))
		if err == nil && b.Hosting && b.Host != l.config.Host {
			l.rejections.add(gate.Rejection{Host: b.Host, Addr: packet.From, Reason: errOtherStore})
		}
	})
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
