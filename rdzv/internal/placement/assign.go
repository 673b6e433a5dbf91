// Package placement assigns ranks to the members of a job: which node is the first one, which ranks
// each agent has, which agents are spares, and the address of rank 0. It depends on the members
// alone.
//
//	assign.go      ranks, local ranks and node ranks; spares
//	order.go       the order of the agents
//	masteraddr.go  MASTER_ADDR
package placement

import (
	"cmp"
	"fmt"
	"slices"

	"rdzv/rdzv/internal/record"
)

type (
	Member    = record.Member
	NodeRanks = record.NodeRanks
	Path      = record.Path
	Problem   = record.Problem
	Seat      = record.Seat
	World     = record.World
)

// Unknown is a rank or size that the launcher does not provide.
const Unknown = record.Unknown

// Assign returns the world and the seats, by ID, of members in the order in which they joined, or
// why there is no world.
//
// Tasks are in the order of order.go. Nodes have the given node ranks, otherwise the order of their
// first tasks. If every agent has one worker, RANK is the launcher's rank; otherwise the ranks are
// consecutive on each node.
func Assign(members []Member, spares int) (World, map[string]Seat, *Problem) {
	if problem := checkNumbers(members); problem != nil {
		return World{}, nil, problem
	}
	tasks, waiting, problem := withoutSpares(InOrder(members), spares)
	if problem != nil {
		return World{}, nil, problem
	}
	seats := SeatTasks(tasks)
	for _, m := range waiting {
		seats[m.ID] = record.SpareSeat
	}
	return WorldOf(members, seats), seats, nil
}

// AssignInTurn returns the world and the seats of members whose launcher's ranks, and node ranks
// that the user gave, may have gaps: their ranks are consecutive in the order of the tasks or, if
// they are seated already, in that of the members.
func AssignInTurn(members []Member, seated bool) (World, map[string]Seat) {
	tasks := slices.Clone(members)
	if !seated {
		tasks = InOrder(members)
	}
	for i := range tasks {
		tasks[i].Rank, tasks[i].NodeRank = Unknown, Unknown
	}
	seats := SeatTasks(tasks)
	return WorldOf(members, seats), seats
}

// WorldOf returns the world of members with these seats.
func WorldOf(members []Member, seats map[string]Seat) World {
	isSpare := func(m Member) bool { return seats[m.ID].Spare }
	tasks := slices.DeleteFunc(slices.Clone(members), isSpare)
	slices.SortFunc(tasks, func(a, b Member) int {
		return cmp.Compare(seats[a.ID].Rank, seats[b.ID].Rank)
	})
	w := World{Agents: len(tasks), StoreRank: Unknown}
	spares := slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return !isSpare(m) })
	w.Spares, w.MoreSpares = record.Cut(record.HostsOf(spares))
	for _, s := range seats {
		w.Size += s.Slots
		w.Nodes = max(w.Nodes, s.Node+1)
	}
	first := tasks[0]
	w.MasterAddr = masterAddr(first, members, w.Nodes)
	w.MasterPort, w.HeadStart = first.MasterPort, record.Seconds(first.HeadStart)
	w.Layout = layoutOf(NodesOf(tasks), seats)
	if i := slices.IndexFunc(members, func(m Member) bool { return m.Hosting }); i >= 0 {
		w.StoreHost, w.StoreRank = members[i].Host, seats[members[i].ID].Rank
	}
	return w
}

// NodesOf groups the tasks by node, in the order of the nodes' first tasks.
func NodesOf(tasks []Member) [][]Member {
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

// SeatTasks assigns ranks, local ranks and node ranks to tasks. If each of the launcher's tasks has
// one worker, that worker has the task's rank.
func SeatTasks(tasks []Member) map[string]Seat {
	keepRanks := !slices.ContainsFunc(tasks, func(m Member) bool {
		return m.Slots != 1 || m.Rank == Unknown || m.Rank >= len(tasks)
	})
	nodes := NodesOf(tasks)
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

// maxLayout is the number of nodes up to which a layout is complete.
const maxLayout = 8

// layoutOf returns the ranks on each node, in the nodes' order; of more than maxLayout nodes the
// first two and the last one, because each agent reads it.
func layoutOf(nodes [][]Member, seats map[string]Seat) []NodeRanks {
	if n := len(nodes); n > maxLayout {
		nodes = [][]Member{nodes[0], nodes[1], nodes[n-1]}
	}
	layout := make([]NodeRanks, len(nodes))
	for i, node := range nodes {
		var ranks []int
		for _, m := range node {
			for r := range m.Slots {
				ranks = append(ranks, seats[m.ID].Rank+r)
			}
		}
		layout[i] = NodeRanks{Host: node[0].Host, Ranks: record.Ranges(ranks)}
	}
	return layout
}

// withoutSpares separates tasks in order from the last n of them, which are to wait as spares for
// the loss of another one. The host of the store is none of them.
func withoutSpares(tasks []Member, n int) (working, spares []Member, problem *Problem) {
	working = slices.Clone(tasks)
	if n == 0 {
		return working, nil, nil
	}
	for _, node := range NodesOf(tasks) {
		first := tasks[0]
		if len(node) > 1 {
			return nil, nil, noSpares("there are %d agents on %s, but with spares each node has one",
				len(node), node[0].Host)
		}
		if node[0].Slots != first.Slots {
			return nil, nil, noSpares("%s runs %d workers and %s %d, but with spares all nodes run the "+
				"same number", first.Host, first.Slots, node[0].Host, node[0].Slots)
		}
	}
	for i := len(working) - 1; i >= 0 && len(spares) < n; i-- {
		if !working[i].Hosting {
			spares = append(spares, working[i])
			working = slices.Delete(working, i, i+1)
		}
	}
	return working, spares, nil
}

func noSpares(format string, args ...any) *Problem {
	text := "cannot keep spares: " + fmt.Sprintf(format, args...)
	return &Problem{Kind: record.OtherProblem, Text: text}
}
