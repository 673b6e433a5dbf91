package rdzv

import "net/netip"

// masterAddr picks the address of rank 0's node that the other nodes reach it by:
// its own end of its connection to the store, or, where it is on the store's
// node, the address that most members of other nodes came in by, of equals the
// one that the first of them used. On one node it is loopback.
func masterAddr(first Member, members []Member, nodes int) string {
	if nodes == 1 {
		return "127.0.0.1"
	}
	if addr, ok := routable(first.Addr); ok {
		return addr
	}
	if addr, ok := mostVia(members, first.Node); ok {
		return addr
	}
	return "127.0.0.1" // agents on one host that count as nodes
}

// mostVia counts by which address of the store members came in. Those on the
// node itself have a say only if there are no others: they reach every address.
func mostVia(members []Member, node string) (string, bool) {
	best, votes := "", map[string]int{}
	for _, m := range members {
		if addr, ok := routable(m.Via); ok && (m.Node == "" || m.Node != node) {
			votes[addr]++
		}
	}
	for _, m := range members {
		if addr, ok := routable(m.Via); ok && (best == "" || votes[addr] > votes[best]) {
			best = addr
		}
	}
	return best, best != ""
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
