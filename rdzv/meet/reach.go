package meet

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// reachTimeout is how long an address may take to answer to count as reachable. The store answers elsewhere already, so it is not busy starting;
// a network that leads nowhere costs the start of the job this much.
const reachTimeout = 250 * time.Millisecond

// Reach gives the addresses of the store that this agent can use, in the host's order: where hosts have several networks, not all of them
// need lead to all, and a connection by one says nothing of the others. Only the store itself counts, not something else with its address.
// Nil on the store's own host, which reaches all of them.
func (m *Meeting) Reach(ctx context.Context) []netip.Addr {
	if m.Hosting {
		return nil
	}
	if mine, err := m.session.mine([]netip.Addr{m.Addr.Addr()}); err != nil || len(mine) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	answers := make([]bool, len(m.Addrs))
	var group sync.WaitGroup
	for i, a := range m.Addrs {
		if a == m.Addr {
			answers[i] = true
			continue
		}
		group.Go(func() { answers[i] = m.answers(ctx, a) })
	}
	group.Wait()
	var list []netip.Addr
	for i, a := range m.Addrs {
		if answers[i] {
			list = append(list, a.Addr())
		}
	}
	if !slices.Contains(list, m.Addr.Addr()) { // the host does not call it so: there is a translation in between
		list = append(list, m.Addr.Addr())
	}
	return list
}

func (m *Meeting) answers(ctx context.Context, addr netip.AddrPort) bool {
	d, err := m.dialing()
	if err != nil {
		return false
	}
	conn, greeted, err := d.dial(ctx, addr)
	if err != nil {
		return false
	}
	conn.Close()
	return greeted.id == m.id
}
