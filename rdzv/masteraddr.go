package rdzv

import "net/netip"

// masterAddr picks the address of rank 0's node that the other nodes reach it by:
// its own end of its connection to the store, or, where it is on the store's
// node, the address of the store that most other nodes can use, of equals the one
// that most agents came in by, then the one that was named first. On one node it
// is loopback.
func masterAddr(first Member, members []Member, nodes int) string {
	if nodes == 1 {
		return "127.0.0.1"
	}
	if addr, ok := routable(first.Addr); ok && first.Addr != first.Via {
		return addr
	}
	if addr, ok := mostReached(members, first.Node); ok {
		return addr
	}
	if addr, ok := routable(first.Addr); ok {
		return addr
	}
	return "127.0.0.1" // agents on one host that count as nodes
}

// mostReached counts by which addresses of the store nodes reach it. Those on the
// node itself have a say only if there are no others: they reach every address.
func mostReached(members []Member, node string) (string, bool) {
	ways, best := map[string]*way{}, &way{}
	var order []*way
	for _, m := range members {
		for _, text := range append(m.Reaches, m.Via) {
			if addr, ok := routable(text); ok && ways[addr] == nil {
				ways[addr] = &way{addr: addr, nodes: map[string]bool{}}
				order = append(order, ways[addr])
			}
			if addr, ok := routable(text); ok && (m.Node == "" || m.Node != node) {
				ways[addr].count(m, text == m.Via)
			}
		}
	}
	for _, w := range order {
		if best.addr == "" || w.better(best) {
			best = w
		}
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
