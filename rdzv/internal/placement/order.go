package placement

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"rdzv/rdzv/internal/record"
)

// InOrder returns the members in the order of their first tasks: by the launcher's ranks; without a
// launcher by the node ranks if they are given, otherwise the node of the store first if the agents
// were told where it is, and then by natural order of host names, addresses and IDs. So the same
// nodes have the same order in every job, whichever agent starts first.
func InOrder(members []Member) []Member {
	ordered := slices.Clone(members)
	storeFirst := slices.ContainsFunc(members, func(m Member) bool { return m.StoreGiven })
	storeAddr := storeAddrOf(members)
	slices.SortStableFunc(ordered, func(a, b Member) int {
		if rank := a.FirstTask().Rank; rank != Unknown {
			return cmp.Compare(rank, b.FirstTask().Rank)
		}
		return cmp.Or(
			cmp.Compare(a.NodeRank, b.NodeRank),
			trueFirst(storeFirst && a.Hosting, storeFirst && b.Hosting),
			NaturalOrder(a.Host, b.Host),
			addrOf(a, storeAddr).Compare(addrOf(b, storeAddr)),
			strings.Compare(a.ID, b.ID),
		)
	})
	return ordered
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// NaturalOrder compares names in which a number counts as one character: node2 is before node10.
func NaturalOrder(a, b string) int {
	for a != "" && b != "" {
		x, y := firstPart(a), firstPart(b)
		a, b = a[len(x):], b[len(y):]
		if isDigit(x[0]) && isDigit(y[0]) {
			m, n := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(m, n)); c != 0 {
				return c
			}
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return strings.Compare(a, b)
}

// firstPart returns the number with which a text begins, otherwise its first byte.
func firstPart(s string) string {
	n := strings.IndexFunc(s, func(r rune) bool { return r > '9' || !isDigit(byte(r)) })
	if n < 0 {
		n = len(s)
	}
	return s[:max(n, 1)]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// storeAddrOf returns the address of the store, at which the agent that hosts it can be reached.
func storeAddrOf(members []Member) string {
	for _, m := range members {
		if addr, ok := routable(m.StoreAddr); ok {
			return addr
		}
	}
	return ""
}

// addrOf returns the address of an agent; invalid if there is none.
func addrOf(m Member, storeAddr string) netip.Addr {
	if m.Hosting {
		m.Addr = storeAddr
	}
	addr, _ := netip.ParseAddr(m.Addr)
	return addr.Unmap()
}

// checkNumbers rejects ranks of the launcher, or node ranks without a launcher, of which some are
// missing, equal, or too high.
func checkNumbers(members []Member) *Problem {
	tasks := tasksOf(members)
	problem := checkRanks(tasks, func(t agentTask) int { return t.Rank }, "launcher rank")
	if problem != nil || members[0].Launched() {
		return problem
	}
	problem = checkRanks(tasks, func(t agentTask) int { return t.nodeRank }, "node rank")
	if problem != nil {
		problem.Hint = "give every agent its own --node-rank, from 0 to --nodes minus 1, " +
			"or give it to none"
	}
	return problem
}

func checkRanks(tasks []agentTask, of func(agentTask) int, name string) *Problem {
	byRank := map[int]agentTask{}
	for _, t := range tasks {
		rank := of(t)
		if (rank == Unknown) != (of(tasks[0]) == Unknown) {
			ranked, unranked := t, tasks[0]
			if rank == Unknown {
				ranked, unranked = unranked, ranked
			}
			return cannotAssign("the agent on %s has %s %d, the agent on %s has none",
				record.Address(*ranked.agent), name, of(ranked), record.Address(*unranked.agent))
		}
		if rank == Unknown {
			continue
		}
		if other, taken := byRank[rank]; taken {
			return cannotAssign("the agents on %s and %s both have %s %d",
				record.Address(*other.agent), record.Address(*t.agent), name, rank)
		}
		if rank >= len(tasks) {
			return cannotAssign("the agent on %s has %s %d, but the job has %d %s",
				record.Address(*t.agent), name, rank, len(tasks), noun(tasks))
		}
		byRank[rank] = t
	}
	return nil
}

// noun returns the word for tasks in messages: without a launcher each agent is a task.
func noun(tasks []agentTask) string {
	if tasks[0].agent.Launched() {
		return "tasks"
	}
	return "agents"
}

func cannotAssign(format string, args ...any) *Problem {
	text := "cannot assign ranks: " + fmt.Sprintf(format, args...)
	return &Problem{Kind: record.OtherProblem, Text: text}
}
