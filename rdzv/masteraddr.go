package rdzv

import (
	"net/netip"
	"slices"
)

// masterAddr picks the address of rank 0's node that the other nodes reach it by.
// What is known of that is which addresses of the store they reach. Where rank 0 is
// on the store's node, it is the one of those that most other nodes can use, of
// equals the one that most agents came in by, then the one that was named first.
// Elsewhere it is rank 0's own on its way to such an address: who reaches that is
// on the same network, or routed to it. On one node it is loopback.
func masterAddr(first Member, members []Member, nodes int) string {
	if nodes == 1 {
		return "127.0.0.1"
	}
	if addr, ok := mostReached(members, first.Node, ends(first, members)); ok {
		return addr
	}
	if addr, ok := routable(first.Addr); ok {
		return addr
	}
	return "127.0.0.1" // agents on one host that count as nodes
}

// onStoresNode tells an agent whose connection to the store has the same address at
// both ends, or that has none.
func onStoresNode(m Member) bool { return m.Addr == m.Via }

// ends are the addresses of rank 0's node on its ways to the store, by the address
// of the store; none on the store's node.
func ends(first Member, members []Member) map[string]string {
	if onStoresNode(first) {
		return nil
	}
	own := map[string]string{}
	for _, m := range append([]Member{first}, members...) {
		if m.Node != first.Node || m.Node == "" && m.ID != first.ID {
			continue
		}
		for _, w := range waysOf(m) {
			store, known := routable(w.Store)
			addr, ok := routable(w.Own)
			if known && ok && own[store] == "" {
				own[store] = addr
			}
		}
	}
	return own
}

func waysOf(m Member) []Way {
	return append(slices.Clone(m.Ways), Way{Store: m.Via, Own: m.Addr})
}

// mostReached counts by which addresses of the store nodes reach it, and returns the
// best or what ends has in its place; what ends lacks counts only if ends is empty.
// Rank 0's node and the store's have a say only if there are no others: they reach
// every address.
func mostReached(members []Member, node string, ends map[string]string) (string, bool) {
	ways, best := map[string]*way{}, &way{}
	var order []*way
	for _, m := range members {
		for _, w := range waysOf(m) {
			addr, ok := routable(w.Store)
			if ok && ways[addr] == nil {
				ways[addr] = &way{addr: addr, nodes: map[string]bool{}}
				order = append(order, ways[addr])
			}
			if ok && !onStoresNode(m) && (m.Node == "" || m.Node != node) {
				ways[addr].count(m, w.Store == m.Via)
			}
		}
	}
	for _, w := range order {
		if len(ends) > 0 && ends[w.addr] == "" {
			continue
		}
		if best.addr == "" || w.better(best) {
			best = w
		}
	}
	if own := ends[best.addr]; own != "" {
		return own, true
	}
	return best.addr, best.addr != ""
}

// way is an address of the store, and whose way there it is.
type way struct {
	addr  string
	nodes map[string]bool // that can use it
	used  int             // how often agents say that they came in by it
}

func (w *way) count(m Member, used bool) {
	if m.Node == "" {
		w.nodes["agent "+m.ID] = true
	} else {
		w.nodes["node "+m.Node] = true
	}
	if used {
		w.used++
	}
}

func (w *way) better(other *way) bool {
	if more := len(w.nodes) - len(other.nodes); more != 0 {
		return more > 0
	}
	return w.used > other.used
}

// routable tells whether other nodes can use an address, and returns it as torch
// wants it. A link-local IPv6 address means something on its own node only.
func routable(addr string) (string, bool) {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return "", false
	}
	a = a.Unmap()
	linkLocal6 := a.Is6() && a.IsLinkLocalUnicast()
	return a.WithZone("").String(), !a.IsLoopback() && !a.IsUnspecified() && !a.IsMulticast() && !linkLocal6
}
