package rdzv

import (
	"cmp"
	"fmt"
	"slices"
)

// assign returns the world and the seats, by ID, of members in the order in which they joined.
//
// Tasks are in the order of the launcher's ranks. Without ranks the host of the store is first,
// because it already listens, and the others are in the order in which they joined. Nodes have the
// launcher's node ranks, otherwise the order of their first tasks. If every agent has one worker,
// RANK is the launcher's rank; otherwise the ranks are consecutive on each node.
func assign(members []Member) (World, map[string]Seat, error) {
	if err := checkRanks(members); err != nil {
		return World{}, nil, err
	}
	tasks := slices.Clone(members)
	slices.SortStableFunc(tasks, func(a, b Member) int {
		return cmp.Compare(position(a), position(b))
	})
	seats := seat(tasks)
	w := World{Agents: len(members), StoreRank: Unknown}
	for _, s := range seats {
		w.Size += s.Slots
		w.Nodes = max(w.Nodes, s.Node+1)
	}
	first := tasks[slices.IndexFunc(tasks, func(m Member) bool { return seats[m.ID].Rank == 0 })]
	w.MasterAddr = masterAddr(first, members, w.Nodes)
	w.MasterPort = first.MasterPort
	if i := slices.IndexFunc(members, func(m Member) bool { return m.Hosting }); i >= 0 {
		w.StoreHost, w.StoreRank = members[i].Host, seats[members[i].ID].Rank
	}
	return w, seats, nil
}

// position is the sort key of a task: its rank, or 0 for the host and 1 for the others.
func position(m Member) int {
	switch {
	case m.Rank != Unknown:
		return m.Rank
	case m.Hosting:
		return 0
	}
	return 1
}

// checkRanks rejects ranks of which some are missing, equal, or too high.
func checkRanks(members []Member) error {
	byRank := map[int]Member{}
	for _, m := range members {
		if (m.Rank == Unknown) != (members[0].Rank == Unknown) {
			ranked, unranked := m, members[0]
			if m.Rank == Unknown {
				ranked, unranked = unranked, ranked
			}
			return fmt.Errorf("cannot assign ranks: the agent on %s has a rank from its launcher, "+
				"the agent on %s has none", address(ranked), address(unranked))
		}
		if m.Rank == Unknown {
			continue
		}
		if other, taken := byRank[m.Rank]; taken {
			return fmt.Errorf("cannot assign ranks: the agents on %s and %s both have rank %d "+
				"from their launcher", address(other), address(m), m.Rank)
		}
		if m.Rank < 0 || m.Rank >= len(members) {
			return fmt.Errorf("cannot assign ranks: the agent on %s has rank %d, but the job has %d agents",
				address(m), m.Rank, len(members))
		}
		byRank[m.Rank] = m
	}
	return nil
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

// nodeRanksOf returns the launcher's node ranks if they are valid, so that they agree with
// the launcher's variables in a script; otherwise the nodes' order. With Slurm's -m
// arbitrary, rank 0 need not be on node 0.
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
