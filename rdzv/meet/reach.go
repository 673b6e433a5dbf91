package meet

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// reachTimeout is how long an address may take to answer to count as reachable. The store answers
// elsewhere already, so it is not busy starting; a network that leads nowhere costs the start of
// the job this much.
const reachTimeout = 250 * time.Millisecond

// A Way is an address of the store that an agent can use, and its own on the way there; that is not
// valid for the way by Meeting.Addr, which the agent has a connection by.
type Way struct{ Store, Own netip.Addr }

// Reach gives the ways to the store that this agent has, in the host's order: where hosts have
// several networks, not all of them need lead to all, and a connection by one says nothing of the
// others. Only the store itself counts, not something else with its address. Nil on the store's own
// host, which reaches all of them.
func (m *Meeting) Reach(ctx context.Context) []Way {
	if m.Hosting {
		return nil
	}
	if mine, err := m.config.mine([]netip.Addr{m.Addr.Addr()}); err != nil || len(mine) > 0 {
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
	if mine := (Way{Store: m.Addr.Addr()}); !slices.Contains(ways, mine) { // the host does not call it so: there is a translation in between
		ways = append(ways, mine)
	}
	return ways
}

// way tries an address; the zero Way is none.
func (m *Meeting) way(ctx context.Context, addr netip.AddrPort) Way {
	conn, greeted, err := m.dialer.Dial(ctx, addr)
	if err != nil {
		return Way{}
	}
	defer conn.Close()
	if greeted.ID != m.id {
		return Way{}
	}
	return Way{Store: addr.Addr(), Own: conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()}
}
