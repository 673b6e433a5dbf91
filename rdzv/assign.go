package rdzv

import (
	"cmp"
	"fmt"
	"slices"
)

// plan is the world as the leader makes it out of the members.
type plan struct {
	world World
	seats map[string]Seat // by member's id
}

// assign seats the members, which are given in the order of their arrival.
//
// Tasks sit in the launcher's order where it gave ranks. Otherwise the host of
// the store comes first, because it listens already, then the others as they
// came. Nodes are numbered as the launcher did, else by their first task. With
// one worker per agent RANK is the launcher's own; with several the ranks are
// dense, node after node.
func assign(members []Member) (plan, error) {
	if err := checkRanks(members); err != nil {
		return plan{}, err
	}
	tasks := slices.Clone(members)
	slices.SortStableFunc(tasks, func(a, b Member) int { return cmp.Compare(position(a), position(b)) })
	p := plan{seats: seat(tasks)}
	p.world.Agents, p.world.StoreRank = len(members), Unknown
	for _, s := range p.seats {
		p.world.Size += s.Slots
		p.world.Nodes = max(p.world.Nodes, s.Node+1)
	}
	first := tasks[slices.IndexFunc(tasks, func(m Member) bool { return p.seats[m.ID].Rank == 0 })]
	p.world.MasterAddr, p.world.MasterPort = masterAddr(first, members, p.world.Nodes), first.MasterPort
	if i := slices.IndexFunc(members, func(m Member) bool { return m.Hosting }); i >= 0 {
		p.world.StoreHost, p.world.StoreRank = members[i].Host, p.seats[members[i].ID].Rank
	}
	return p, nil
}

// position is where a task sits among the others: by rank, else the host first.
func position(m Member) int {
	switch {
	case m.Rank != Unknown:
		return m.Rank
	case m.Hosting:
		return 0
	}
	return 1
}

// checkRanks refuses tasks that contradict each other.
func checkRanks(members []Member) error {
	byRank := map[int]Member{}
	for _, m := range members {
		if (m.Rank == Unknown) != (members[0].Rank == Unknown) {
			with, without := m, members[0]
			if m.Rank == Unknown {
				with, without = without, with
			}
			return fmt.Errorf("cannot assign ranks: the agent on %s has a rank from its launcher, the agent on %s has none",
				address(with), address(without))
		}
		if m.Rank == Unknown {
			continue
		}
		if other, taken := byRank[m.Rank]; taken {
			return fmt.Errorf("cannot assign ranks: the agents on %s and %s both have rank %d from their launcher",
				address(other), address(m), m.Rank)
		}
		if m.Rank < 0 || m.Rank >= len(members) {
			return fmt.Errorf("cannot assign ranks: the agent on %s has rank %d, but the job has %d agents",
				address(m), m.Rank, len(members))
		}
		byRank[m.Rank] = m
	}
	return nil
}

// nodesOf groups the tasks by node; nodes come in the order of their first task.
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

// seat numbers the workers, node after node.
func seat(tasks []Member) map[string]Seat {
	nodes, kept := nodesOf(tasks), keepsRanks(tasks)
	numbers := nodeNumbers(nodes)
	seats := map[string]Seat{}
	rank := 0
	for n, node := range nodes {
		size, local := slots(node), 0
		keptLocal := kept && keepsLocalRanks(node)
		for _, m := range node {
			s := Seat{Rank: rank, LocalRank: local, LocalSize: size, Node: numbers[n], Slots: m.Slots}
			if kept {
				s.Rank = m.Rank
			}
			if keptLocal {
				s.LocalRank = m.LocalRank
			}
			seats[m.ID] = s
			rank += m.Slots
			local += m.Slots
		}
	}
	return seats
}

// nodeNumbers are the launcher's numbers of the nodes where it gave each a number
// of its own, so that they are those that it tells a script; else their order.
// Slurm's begin on another node than rank 0's with -m arbitrary.
func nodeNumbers(nodes [][]Member) []int {
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

// keepsRanks tells whether the launcher's ranks are the workers', which may then
// alternate between nodes: every task has one worker.
func keepsRanks(tasks []Member) bool {
	return !slices.ContainsFunc(tasks, func(m Member) bool { return m.Slots != 1 || m.Rank == Unknown })
}

// keepsLocalRanks tells whether the launcher has numbered all tasks of a node
// from 0. It may count them in another order than that of their ranks.
func keepsLocalRanks(node []Member) bool {
	seen := make([]bool, len(node))
	for _, m := range node {
		if m.LocalSize != len(node) || m.LocalRank < 0 || m.LocalRank >= len(node) || seen[m.LocalRank] {
			return false
		}
		seen[m.LocalRank] = true
	}
	return true
}

func slots(node []Member) int {
	n := 0
	for _, m := range node {
		n += m.Slots
	}
	return n
}
