package rdzv

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
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
// came. Nodes are numbered by their first task. With one worker per agent RANK
// is the launcher's own; with several the ranks are dense, node after node.
func assign(members []Member) (plan, error) {
	if err := checkRanks(members); err != nil {
		return plan{}, err
	}
	tasks := slices.Clone(members)
	slices.SortStableFunc(tasks, func(a, b Member) int {
		if a.Rank == Any {
			return hostFirst(a, b)
		}
		return cmp.Compare(a.Rank, b.Rank)
	})
	p := plan{seats: seat(nodesOf(tasks))}
	for _, s := range p.seats {
		p.world.Size += s.Slots
		p.world.Nodes = max(p.world.Nodes, s.Node+1)
	}
	p.world.Agents = len(members)
	first := tasks[slices.IndexFunc(tasks, func(m Member) bool { return p.seats[m.ID].Rank == 0 })]
	p.world.MasterAddr = masterAddr(first, members, p.world.Nodes)
	p.world.MasterPort = first.MasterPort
	p.world.Digest = digest(p)
	return p, nil
}

func hostFirst(a, b Member) int {
	switch {
	case a.Hosting == b.Hosting:
		return 0
	case a.Hosting:
		return -1
	default:
		return 1
	}
}

// checkRanks refuses tasks that contradict each other.
func checkRanks(members []Member) error {
	byRank := map[int]Member{}
	for _, m := range members {
		if (m.Rank == Any) != (members[0].Rank == Any) {
			return fmt.Errorf("cannot seat the agents: %s has a rank from its launcher and %s has none", name(m), name(members[0]))
		}
		if m.Rank == Any {
			continue
		}
		if other, taken := byRank[m.Rank]; taken {
			return fmt.Errorf("cannot seat the agents: %s and %s both have rank %d from their launcher", name(other), name(m), m.Rank)
		}
		if m.Rank < 0 || m.Rank >= len(members) {
			return fmt.Errorf("cannot seat the agents: %s has rank %d of %d", name(m), m.Rank, len(members))
		}
		byRank[m.Rank] = m
	}
	return nil
}

func name(m Member) string { return fmt.Sprintf("process %d on %s", m.PID, m.Host) }

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

func seat(nodes [][]Member) map[string]Seat {
	single := true // one worker per task: the launcher's ranks hold, and may alternate between nodes
	for _, node := range nodes {
		for _, m := range node {
			single = single && m.Slots == 1 && m.Rank != Any
		}
	}
	seats := map[string]Seat{}
	rank := 0
	for n, node := range nodes {
		size := 0
		for _, m := range node {
			size += m.Slots
		}
		local := 0
		for _, m := range node {
			s := Seat{Rank: rank, LocalRank: local, LocalSize: size, Node: n, Slots: m.Slots}
			if single {
				s.Rank = m.Rank
			}
			if single && m.LocalRank != Any && m.LocalSize == size {
				s.LocalRank = m.LocalRank // the launcher may count a node's tasks in another order
			}
			seats[m.ID] = s
			rank += m.Slots
			local += m.Slots
		}
	}
	return seats
}

// masterAddr picks the address of rank 0's node that the other nodes reach it by:
// its own end of its connection to the store, or, where it is on the store's
// node, the address that most members came in by.
func masterAddr(first Member, members []Member, nodes int) string {
	const loopback = "127.0.0.1"
	if nodes == 1 {
		return loopback
	}
	if routable(first.Addr) {
		return first.Addr
	}
	votes := map[string]int{}
	best := loopback
	for _, m := range members {
		if !routable(m.Via) {
			continue
		}
		votes[m.Via]++
		if votes[m.Via] > votes[best] {
			best = m.Via
		}
	}
	return best
}

func routable(addr string) bool {
	a, err := netip.ParseAddr(addr)
	return err == nil && !a.IsLoopback()
}

func digest(p plan) string {
	b, err := json.Marshal(p.seats) // maps are encoded in the order of their keys
	if err != nil {
		panic("rdzv: seats that cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:4])
}
