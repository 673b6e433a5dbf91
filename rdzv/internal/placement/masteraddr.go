package placement

import (
	"cmp"
	"net/netip"
	"slices"
)

const loopback = "127.0.0.1"

// masterAddr returns the address of rank 0's node that the other nodes can reach. All that is known
// of the network is which addresses of the store each node reaches, and by which address of its
// own. If rank 0 is on the store's node, MASTER_ADDR is the address of the store that most other
// nodes reach. Otherwise it is rank 0's own address on its way to that address: a node that reaches
// the one is on the same network as the other, or routed to it.
func masterAddr(first Member, members []Member, nodes int) string {
	if nodes == 1 {
		return loopback
	}
	own := ownAddrs(first, members)
	routes := routesTo(members, first.Node)
	if allowed := allowedAt(first, members); len(allowed) > 0 {
		excluded := func(r *route) bool { return !slices.Contains(allowed, r.store) }
		routes = slices.DeleteFunc(routes, excluded)
	}
	if len(own) > 0 {
		routes = slices.DeleteFunc(routes, func(r *route) bool { return own[r.store] == "" })
	}
	if len(routes) > 0 {
		// The one that most nodes reach, then the one most used; of equals, the first one.
		best := slices.MaxFunc(routes, func(a, b *route) int {
			return cmp.Or(cmp.Compare(len(a.nodes), len(b.nodes)), cmp.Compare(a.used, b.used))
		})
		return cmp.Or(own[best.store], best.store)
	}
	if addr, ok := routable(first.Addr); ok {
		return addr
	}
	return loopback // several agents of one host that count as nodes
}

// onStoresNode reports whether the agent is on the store's node: both ends of its
// connection have the same address, or it has none.
func onStoresNode(m Member) bool { return m.Addr == m.StoreAddr }

// allowedAt returns the addresses of the store's node, if rank 0 is on it, to which the user has
// restricted that node; none without a restriction.
func allowedAt(first Member, members []Member) (addrs []string) {
	if !onStoresNode(first) {
		return nil
	}
	for _, m := range members {
		if !m.Hosting {
			continue
		}
		for _, w := range m.Paths {
			if store, ok := routable(w.Store); ok {
				addrs = append(addrs, store)
			}
		}
	}
	return addrs
}

// ownAddrs returns the own addresses of rank 0's node on its paths to the store, by address
// of the store; none if rank 0 is on the store's node.
func ownAddrs(first Member, members []Member) map[string]string {
	if onStoresNode(first) {
		return nil
	}
	own := map[string]string{}
	for _, m := range append([]Member{first}, members...) {
		if m.Node != first.Node || m.Node == "" && m.ID != first.ID {
			continue
		}
		for _, w := range pathsOf(m) {
			store, known := routable(w.Store)
			addr, ok := routable(w.Own)
			if known && ok && own[store] == "" {
				own[store] = addr
			}
		}
	}
	return own
}

func pathsOf(m Member) []Path {
	return append(slices.Clone(m.Paths), Path{Store: m.StoreAddr, Own: m.Addr})
}

// route is an address of the store, and who uses it.
type route struct {
	store string
	nodes map[string]bool // that reach it
	used  int             // agents whose connection goes there
}

// routesTo returns the addresses of the store in the order in which the members name them. Agents
// on rank 0's node and on the store's are not counted, because they reach every address.
func routesTo(members []Member, node string) (routes []*route) {
	for _, m := range members {
		for _, w := range pathsOf(m) {
			store, ok := routable(w.Store)
			if !ok {
				continue
			}
			i := slices.IndexFunc(routes, func(r *route) bool { return r.store == store })
			if i < 0 {
				i = len(routes)
				routes = append(routes, &route{store: store, nodes: map[string]bool{}})
			}
			if onStoresNode(m) || m.Node != "" && m.Node == node {
				continue
			}
			routes[i].nodes[cmp.Or(m.Node, "agent "+m.ID)] = true
			if w.Store == m.StoreAddr {
				routes[i].used++
			}
		}
	}
	return routes
}

// routable returns an address as torch expects it, and reports whether other nodes can
// use it. A link-local IPv6 address has a meaning on its own node only.
func routable(addr string) (string, bool) {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return "", false
	}
	a = a.Unmap()
	local := a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() ||
		a.Is6() && a.IsLinkLocalUnicast()
	return a.WithZone("").String(), !local
}
