package meet

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// reachTimeout limits the time for a connection to one address of the store. The store is running,
// so a reachable address answers quickly, and an unreachable one delays the job by this time.
const reachTimeout = 250 * time.Millisecond

// A Way is an address of the store that this agent can reach, and the agent's own address on such a
// connection. Own is not valid for Meeting.Addr, to which the agent is connected already.
type Way struct{ Store, Own netip.Addr }

// Reach connects to all addresses on which the store listens and returns those that this agent can
// reach, in the host's order. On hosts with several networks, a connection to one address does not
// show that the others are reachable too. The result is nil on the store's own host.
func (m *Meeting) Reach(ctx context.Context) []Way {
	if m.Hosting {
		return nil
	}
	if own, err := m.config.ownAddrs([]netip.Addr{m.Addr.Addr()}); err != nil || len(own) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	ways := make([]Way, len(m.Addrs))
	var group sync.WaitGroup
	for i, a := range m.Addrs {
		if a == m.Addr {
			ways[i] = Way{Store: a.Addr()}
			continue
		}
		group.Go(func() { ways[i] = m.way(ctx, a) })
	}
	group.Wait()
	ways = slices.DeleteFunc(ways, func(w Way) bool { return w == Way{} })
	// With address translation, the host does not know the address that this agent uses.
	if used := (Way{Store: m.Addr.Addr()}); !slices.Contains(ways, used) {
		ways = append(ways, used)
	}
	return ways
}

// way tries one address; the result is the zero Way if this store does not answer there.
func (m *Meeting) way(ctx context.Context, addr netip.AddrPort) Way {
	conn, greeting, err := m.dialer.Dial(ctx, addr)
	if err != nil {
		return Way{}
	}
	defer conn.Close()
	if greeting.ID != m.id {
		return Way{}
	}
	own := conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr()
	return Way{Store: addr.Addr(), Own: own.Unmap()}
}
