package placement

import (
	"fmt"
	"strings"
	"testing"

	"rdzv/rdzv/internal/record"
)

// agentOf is an agent of a node with tasks: rank and number of workers of each, whose local ranks
// are in this order.
func agentOf(node string, tasks ...[2]int) Member {
	m := Member{Host: node, Node: node, NodeRank: Unknown, LocalSize: len(tasks)}
	for i, t := range tasks {
		m.Tasks = append(m.Tasks, record.Task{Rank: t[0], LocalRank: i, Slots: t[1]})
	}
	return m
}

// Tasks with an agent in common have the places that they have with agents of their own.
func TestAssignToAgentsWithManyTasks(t *testing.T) {
	ofMore := func(m Member, size int) Member { m.LocalSize = size; return m }
	late := ofMore(agentOf("a", [2]int{2, 1}), 3)
	late.Tasks[0].LocalRank = 2
	backwards := agentOf("a", [2]int{1, 1}, [2]int{0, 1})
	for name, test := range map[string]struct {
		members []Member
		want    string // the ranks, the local ranks and the node of each, and the seats' parts
	}{
		"consecutive": {
			[]Member{agentOf("b", [2]int{2, 1}, [2]int{3, 1}), agentOf("a", [2]int{0, 1}, [2]int{1, 1})},
			"[2 3] [0 1] 1 in 1, [0 1] [0 1] 0 in 1",
		},
		"interleaved": {
			[]Member{agentOf("a", [2]int{0, 1}, [2]int{2, 1}), agentOf("b", [2]int{1, 1}, [2]int{3, 1})},
			"[0 2] [0 1] 0 in 2, [1 3] [0 1] 1 in 2",
		},
		"local ranks backwards": {
			[]Member{agentOf("b", [2]int{2, 1}), backwards}, "[2] [0] 1 in 1, [1 0] [0 1] 0 in 2",
		},
		"a late task": {
			[]Member{late, ofMore(agentOf("a", [2]int{0, 1}, [2]int{1, 1}), 3), agentOf("b", [2]int{3, 1})},
			"[2] [2] 0 in 1, [0 1] [0 1] 0 in 1, [3] [0] 1 in 1",
		},
		"several workers of each": {
			[]Member{agentOf("b", [2]int{1, 2}), agentOf("a", [2]int{0, 2}, [2]int{2, 1})},
			"[3 4] [0 1] 1 in 1, [0 1 2] [0 1 2] 0 in 1",
		},
		"several workers, backwards": {
			[]Member{agentOf("a", [2]int{1, 2}, [2]int{0, 1})}, "[1 2 0] [1 2 0] 0 in 2",
		},
	} {
		var got []string
		for _, s := range seated(t, test.members) {
			var local []int
			for i := range s.Workers() {
				local = append(local, s.LocalRankOf(i))
			}
			got = append(got, fmt.Sprintf("%d %d %d in %d", s.AllRanks(), local, s.Node, len(s.Tasks)))
		}
		if got := strings.Join(got, ", "); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// Ranks of all tasks are compared, also of one agent.
func TestRanksOfManyTasks(t *testing.T) {
	for name, test := range map[string]struct {
		members []Member
		want    string
	}{
		"twice":    {[]Member{agentOf("a", [2]int{0, 1}, [2]int{1, 1}), agentOf("b", [2]int{1, 1})}, "both have"},
		"too high": {[]Member{agentOf("a", [2]int{0, 1}, [2]int{2, 1})}, "rank 2, but the job has 2 tasks"},
	} {
		_, _, problem := Assign(test.members, 0)
		if problem == nil || !strings.Contains(problem.Text, test.want) {
			t.Errorf("%s: %v, want %q", name, problem, test.want)
		}
	}
}

// A spare may have other tasks than those whose ranks it can take over.
func TestSparesWithManyTasks(t *testing.T) {
	members := []Member{
		agentOf("a", [2]int{0, 1}, [2]int{3, 1}), agentOf("b", [2]int{1, 2}),
		agentOf("c", [2]int{2, 1}, [2]int{4, 1}),
	}
	for i := range members {
		members[i].ID = members[i].Node
	}
	w, seats, problem := Assign(members, 1)
	if problem != nil || w.Size != 4 || !seats["c"].Spare || seats["a"].Ranks() != "0-1" ||
		seats["b"].Ranks() != "2-3" {
		t.Errorf("%+v %+v %v", w, seats, problem)
	}
}
