package rdzv

import (
	"cmp"
	"net/netip"
	"slices"
)

// assign returns the world and the seats, by ID, of members in the order in which they joined, or
// why there is no world.
//
// Tasks are in the order of order.go. Nodes have the given node ranks, otherwise the order of their
// first tasks. If every agent has one worker, RANK is the launcher's rank; otherwise the ranks are
// consecutive on each node.
func assign(members []Member, spares int) (World, map[string]Seat, *Problem) {
	if problem := checkNumbers(members); problem != nil {
		return World{}, nil, problem
	}
	tasks, waiting, problem := withoutSpares(inOrder(members), spares)
	if problem != nil {
		return World{}, nil, problem
	}
	seats := seat(tasks)
	for _, m := range waiting {
		seats[m.ID] = spareSeat
	}
	return worldOf(members, seats), seats, nil
}

// worldOf returns the world of members with these seats.
func worldOf(members []Member, seats map[string]Seat) World {
	isSpare := func(m Member) bool { return seats[m.ID].Spare }
	tasks := slices.DeleteFunc(slices.Clone(members), isSpare)
	slices.SortFunc(tasks, func(a, b Member) int {
		return cmp.Compare(seats[a.ID].Rank, seats[b.ID].Rank)
	})
	w := World{Agents: len(tasks), StoreRank: Unknown}
	w.Spares, w.MoreSpares = cut(hostsOf(slices.DeleteFunc(slices.Clone(members), func(m Member) bool {
		return !isSpare(m)
	})))
	for _, s := range seats {
		w.Size += s.Slots
		w.Nodes = max(w.Nodes, s.Node+1)
	}
	first := tasks[0]
	w.MasterAddr = masterAddr(first, members, w.Nodes)
	w.MasterPort, w.HeadStart = first.MasterPort, first.HeadStart
	w.Layout = layoutOf(nodesOf(tasks), seats)
	if i := slices.IndexFunc(members, func(m Member) bool { return m.Hosting }); i >= 0 {
		w.StoreHost, w.StoreRank = members[i].Host, seats[members[i].ID].Rank
	}
	return w
}

// nodesOf groups the tasks by node, in the order of the nodes' first tasks.
func nodesOf(tasks []Member) [][]Member {
	var nodes [][]Member
	index := map[string]int{}
	for _, m := range tasks {
		i, known := index[m.Node]
		if !known || m.Node == "" {
			i = len(nodes)
			index[m.Node] = i
			nodes = append(nodes, nil)
		}
		nodes[i] = append(nodes[i], m)
	}
	return nodes
}

// seat assigns ranks, local ranks and node ranks to tasks. If each of the launcher's tasks has one
// worker, that worker has the task's rank.
func seat(tasks []Member) map[string]Seat {
	keepRanks := !slices.ContainsFunc(tasks, func(m Member) bool {
		return m.Slots != 1 || m.Rank == Unknown || m.Rank >= len(tasks)
	})
	nodes := nodesOf(tasks)
	nodeRanks := nodeRanksOf(nodes)
	seats := map[string]Seat{}
	rank := 0
	for n, node := range nodes {
		size, local := 0, 0
		for _, m := range node {
			size += m.Slots
		}
		keepLocalRanks := keepRanks && validLocalRanks(node)
		for _, m := range node {
			s := Seat{Rank: rank, LocalRank: local, LocalSize: size, Node: nodeRanks[n], Slots: m.Slots}
			if keepRanks {
				s.Rank = m.Rank
			}
			if keepLocalRanks {
				s.LocalRank = m.LocalRank
			}
			seats[m.ID] = s
			rank += m.Slots
			local += m.Slots
		}
	}
	return seats
}

// nodeRanksOf returns the given node ranks if they are valid, so that they agree with the
// launcher's variables in a script; otherwise the nodes' order. With Slurm's -m arbitrary, rank 0
// need not be on node 0.
func nodeRanksOf(nodes [][]Member) []int {
	given, ordered := make([]int, len(nodes)), make([]int, len(nodes))
	seen := map[int]bool{}
	for i, node := range nodes {
		n := node[0].NodeRank
		same := !slices.ContainsFunc(node, func(m Member) bool { return m.NodeRank != n })
		if same && n >= 0 && n < len(nodes) {
			seen[n] = true
		}
		given[i], ordered[i] = n, i
	}
	if len(seen) == len(nodes) {
		return given
	}
	return ordered
}

// validLocalRanks reports whether the launcher's local ranks on a node are 0 to n-1, in any order.
func validLocalRanks(node []Member) bool {
	seen := make([]bool, len(node))
	for _, m := range node {
		if m.LocalSize != len(node) || m.LocalRank < 0 || m.LocalRank >= len(node) || seen[m.LocalRank] {
			return false
		}
		seen[m.LocalRank] = true
	}
	return true
}

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
func onStoresNode(m Member) bool { return m.Addr == m.Via }

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
		for _, w := range waysOf(m) {
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
			if w.Store == m.Via {
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
