package meet

import (
	"context"

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
