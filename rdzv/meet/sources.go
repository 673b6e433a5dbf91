package meet

import (
	"context"
	"net/netip"
	"time"
)

// A port that comes later in the sequence is as likely as the next address with the first port: perPort addresses later.
const perPort = 4

// offerAll gives each address with each port.
func offerAll(give func(offer), name string, likely int, addrs []netip.Addr, ports []int) {
	for i, a := range addrs {
		for j, port := range ports {
			give(offer{netip.AddrPortFrom(a, uint16(port)), name, likely + i + perPort*j})
		}
	}
}

// nearby offers this host's own addresses: loopback when all agents are here, else those that a store would listen on.
func (s *session) nearby(ports []int) source {
	return func(_ context.Context, give func(offer)) {
		addrs, err := s.listenAddrs()
		if err == nil {
			offerAll(give, "this host", 0, addrs, ports)
		}
	}
}

// fixed offers addresses that are known.
func (s *session) fixed(name string, addrs []netip.Addr, ports []int) source {
	return func(_ context.Context, give func(offer)) { offerAll(give, name, 0, addrs, ports) }
}

// resolveEvery is how often names are looked up again: a host may come up after us.
const resolveEvery = 2 * time.Second

// name offers the addresses of one host, also when its name can be resolved only later.
func (s *session) name(host string, ports []int) source {
	return func(ctx context.Context, give func(offer)) {
		if a, err := netip.ParseAddr(host); err == nil {
			offerAll(give, host, 0, []netip.Addr{a}, ports)
			return
		}
		for ctx.Err() == nil {
			addrs, _ := s.Resolve(ctx, host)
			for i := range addrs {
				addrs[i] = addrs[i].Unmap()
			}
			offerAll(give, host, 0, addrs, ports)
			pause(ctx, resolveEvery)
		}
	}
}
