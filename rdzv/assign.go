package rdzv

import "slices"

// assign returns the world and the seats, by ID, of members in the order in which they joined, or
// why there is no world.
//
// Tasks are in the order of order.go. Nodes have the given node ranks, otherwise the order of their
// first tasks. If every agent has one worker, RANK is the launcher's rank; otherwise the ranks are
// consecutive on each node.
func assign(members []Member) (World, map[string]Seat, *Problem) {
	if problem := checkNumbers(members); problem != nil {
		return World{}, nil, problem
	}
	tasks := inOrder(members)
	seats := seat(tasks)
	w := World{Agents: len(members), StoreRank: Unknown}
	for _, s := range seats {
		w.Size += s.Slots
		w.Nodes = max(w.Nodes, s.Node+1)
	}
	first := tasks[slices.IndexFunc(tasks, func(m Member) bool { return seats[m.ID].Rank == 0 })]
	w.MasterAddr = masterAddr(first, members, w.Nodes)
	w.MasterPort = first.MasterPort
	w.Layout = layoutOf(nodesOf(tasks), seats)
	if i := slices.IndexFunc(members, func(m Member) bool { return m.Hosting }); i >= 0 {
		w.StoreHost, w.StoreRank = members[i].Host, seats[members[i].ID].Rank
	}
	return w, seats, nil
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
		return m.Slots != 1 || m.Rank == Unknown
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
