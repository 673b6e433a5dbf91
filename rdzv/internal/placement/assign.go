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

// agentTask is one of the tasks of an agent.
type agentTask struct {
	record.Task
	nodeRank int
	agent    *Member
	index    int // among those of the agent
	place    record.SeatTask
}

// tasksOf returns the tasks of members, in the order of these.
func tasksOf(members []Member) (tasks []agentTask) {
	for i := range members {
		m := &members[i]
		for n, t := range m.Tasks {
			tasks = append(tasks, agentTask{Task: t, nodeRank: m.NodeRank, agent: m, index: n})
		}
	}
	return tasks
}

// tasksInOrder returns the tasks of members by the launcher's ranks, otherwise in the order of the
// members.
func tasksInOrder(members []Member) []agentTask {
	tasks := tasksOf(InOrder(members))
	slices.SortStableFunc(tasks, func(a, b agentTask) int { return cmp.Compare(a.Rank, b.Rank) })
	return tasks
}

// Assign returns the world and the seats, by ID, of members in the order in which they joined, or
// why there is no world.
//
// Members are in the order of order.go, their tasks in that of the launcher's ranks. Nodes have the
// order of their first tasks, as with torchrun: node rank 0 is that of rank 0's node, whose address
// is MASTER_ADDR. The launcher may number the nodes differently: with Slurm's -m arbitrary, rank 0
// need not be on node 0. If every task has one worker, RANK is the launcher's rank; otherwise the
// ranks are consecutive on each node.
func Assign(members []Member, spares int) (World, map[string]Seat, *Problem) {
	if problem := checkNumbers(members); problem != nil {
		return World{}, nil, problem
	}
	working, waiting, problem := withoutSpares(InOrder(members), spares)
	if problem != nil {
		return World{}, nil, problem
	}
	seats := seatTasks(tasksInOrder(working))
	for _, m := range waiting {
		seats[m.ID] = record.SpareSeat
	}
	return WorldOf(members, seats), seats, nil
}

// AssignInTurn returns the world and the seats of members whose launcher's ranks, and node ranks
// that the user gave, may have gaps: their ranks are consecutive in the order of the tasks or, if
// they are seated already, in that of the members.
func AssignInTurn(members []Member, seated bool) (World, map[string]Seat) {
	tasks := tasksOf(members)
	if !seated {
		tasks = tasksInOrder(members)
	}
	for i := range tasks {
		tasks[i].Rank, tasks[i].nodeRank = Unknown, Unknown
	}
	seats := seatTasks(tasks)
	return WorldOf(members, seats), seats
}

// WorldOf returns the world of members with these seats.
func WorldOf(members []Member, seats map[string]Seat) World {
	isSpare := func(m Member) bool { return seats[m.ID].Spare }
	working := slices.DeleteFunc(slices.Clone(members), isSpare)
	slices.SortFunc(working, func(a, b Member) int {
		return cmp.Compare(seats[a.ID].First(), seats[b.ID].First())
	})
	w := World{Agents: len(working), StoreRank: Unknown}
	spares := slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return !isSpare(m) })
	w.Spares, w.MoreSpares = record.Cut(record.HostsOf(spares))
	for _, s := range seats {
		w.Size += s.Workers()
		w.Nodes = max(w.Nodes, s.Node+1)
	}
	first := working[0]
	w.MasterAddr = masterAddr(first, members, w.Nodes)
	w.MasterPort, w.HeadStart = first.MasterPort, record.Seconds(first.HeadStart)
	w.Layout = layoutOf(NodesOf(working), seats)
	if i := slices.IndexFunc(members, func(m Member) bool { return m.Hosting }); i >= 0 {
		w.StoreHost, w.StoreRank = members[i].Host, seats[members[i].ID].First()
	}
	return w
}

// NodesOf groups members by node, in the order of the nodes' first members.
func NodesOf(members []Member) [][]Member {
	return byNode(members, func(m Member) *Member { return &m })
}

// byNode groups members, or tasks, by the nodes of their agents, in the order of the first ones.
func byNode[T any](all []T, agent func(T) *Member) (nodes [][]T) {
	index := map[string]int{}
	for _, one := range all {
		m := agent(one)
		name := cmp.Or(m.Node, "agent "+m.ID)
		i, known := index[name]
		if !known {
			i = len(nodes)
			index[name] = i
			nodes = append(nodes, nil)
		}
		nodes[i] = append(nodes[i], one)
	}
	return nodes
}

// seatTasks assigns ranks, local ranks and node ranks to tasks, and returns the seats of their
// agents. If each of the launcher's tasks has one worker, that worker has the task's rank.
func seatTasks(tasks []agentTask) map[string]Seat {
	keepRanks := !slices.ContainsFunc(tasks, func(t agentTask) bool {
		return t.Slots != 1 || t.Rank == Unknown || t.Rank >= len(tasks)
	})
	nodes := byNode(tasks, func(t agentTask) *Member { return t.agent })
	seats := map[string]Seat{}
	rank := 0
	for n, node := range nodes {
		local := 0
		keepLocalRanks := keepRanks && validLocalRanks(node)
		for i, t := range node {
			place := record.SeatTask{Rank: rank, LocalRank: local, Slots: t.Slots}
			rank += t.Slots
			local += t.Slots
			if keepRanks {
				place.Rank = t.Rank
			}
			if keepLocalRanks {
				place.LocalRank = t.LocalRank
			}
			node[i].place = place
		}
		seatNode(seats, node, n, local)
	}
	return seats
}

// seatNode gives the agents of a node the places of their tasks.
func seatNode(seats map[string]Seat, node []agentTask, nodeRank, size int) {
	slices.SortStableFunc(node, func(a, b agentTask) int { return cmp.Compare(a.index, b.index) })
	for _, t := range node {
		s := seats[t.agent.ID]
		s.LocalSize, s.Node = size, nodeRank
		s.Add(t.place)
		seats[t.agent.ID] = s
	}
}

// validLocalRanks reports whether the launcher's local ranks on a node are 0 to n-1, in any order.
func validLocalRanks(node []agentTask) bool {
	n := len(node)
	seen := make([]bool, n)
	for _, t := range node {
		if t.agent.LocalSize != n || t.LocalRank < 0 || t.LocalRank >= n || seen[t.LocalRank] {
			return false
		}
		seen[t.LocalRank] = true
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
			ranks = append(ranks, seats[m.ID].AllRanks()...)
		}
		layout[i] = NodeRanks{Host: node[0].Host, Ranks: record.Ranges(ranks)}
	}
	return layout
}

// withoutSpares separates members in order from the last n of them, which are to wait as spares for
// the loss of another one. The host of the store is none of them.
func withoutSpares(members []Member, n int) (working, spares []Member, problem *Problem) {
	working = slices.Clone(members)
	if n == 0 {
		return working, nil, nil
	}
	for _, node := range NodesOf(members) {
		first, other := members[0], node[0]
		if len(node) > 1 {
			return nil, nil, noSpares("there are %d agents on %s, but with spares each node has one",
				len(node), other.Host)
		}
		if other.Workers() != first.Workers() {
			return nil, nil, noSpares("%s runs %d workers and %s %d, but with spares all nodes run the "+
				"same number", first.Host, first.Workers(), other.Host, other.Workers())
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
