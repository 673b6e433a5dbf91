package meet

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
)

// DifferentStore reports an agent of the same job that hosts a store too, on another host than
// Config.Store of this agent names. The two do not meet.
type DifferentStore struct {
	Host string     `json:"host,omitempty"` // the name that the other agent gives itself
	Addr netip.Addr `json:"addr"`           // its address
}

// String names the agent and what the user can do.
func (n DifferentStore) String() string {
	return n.Agent() + " hosts another store for the same command; " +
		"for one job give all nodes the same Config.Store"
}

// Agent is the name and the address of the agent.
func (n DifferentStore) Agent() string { return hostAndAddr(n.Host, n.Addr) }

func (n DifferentStore) describe() string {
	return n.Agent() + ", which hosts another store for the same command"
}

func (DifferentStore) notice() {}

// errOtherStore is the reason of a rejection for which DifferentStore is reported.
var errOtherStore = errors.New("hosts another store")

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
