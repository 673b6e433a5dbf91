package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"rdzv/rdzv/internal/record"
)

// task returns a member on a node, with the launcher's rank and a number of workers.
func task(node string, rank, slots int) Member {
	return Member{Host: node, Node: node, LocalSize: Unknown, NodeRank: Unknown,
		Tasks: []record.Task{{Rank: rank, LocalRank: Unknown, Slots: slots}}}
}

func TestAssign(t *testing.T) {
	alone := func(slots int) Member { return task("", Unknown, slots) }
	hosting := func(m Member) Member { m.Hosting = true; return m }
	local := func(m Member, rank, size int) Member { m.Tasks[0].LocalRank, m.LocalSize = rank, size; return m }
	named := func(m Member, host string) Member { m.Host = host; return m }
	atStore := func(m Member) Member { m.Hosting, m.StoreGiven = true, true; return m }
	at := func(m Member, addr string) Member { m.Addr, m.StoreAddr = addr, "10.0.0.2"; return m }
	numbered := func(m Member, node int) Member { m.NodeRank = node; return m }
	for name, test := range map[string]struct {
		members []Member // in the order in which they joined
		seats   string   // rank:local rank/local size@node of each
	}{
		"one": {[]Member{task("a", 0, 1)}, "0:0/1@0"},
		"ranks in another order": {[]Member{task("a", 2, 1), task("a", 0, 1), task("a", 1, 1)},
			"2:2/3@0 0:0/3@0 1:1/3@0"},
		"two nodes": {
			[]Member{task("b", 3, 1), task("a", 0, 1), task("b", 2, 1), task("a", 1, 1)},
			"3:1/2@1 0:0/2@0 2:0/2@1 1:1/2@0",
		},
		"interleaved nodes": {
			[]Member{task("a", 0, 1), task("b", 1, 1), task("a", 2, 1), task("b", 3, 1)},
			"0:0/2@0 1:0/2@1 2:1/2@0 3:1/2@1",
		},
		"uneven nodes": {[]Member{task("a", 0, 1), task("b", 1, 1), task("b", 2, 1)},
			"0:0/1@0 1:0/2@1 2:1/2@1"},
		"other local ranks": {
			[]Member{local(task("a", 0, 1), 1, 2), local(task("a", 1, 1), 0, 2)}, "0:1/2@0 1:0/2@0",
		},
		"equal local ranks": {
			[]Member{local(task("a", 0, 1), 1, 2), local(task("a", 1, 1), 1, 2)}, "0:0/2@0 1:1/2@0",
		},
		"local ranks of more tasks": {
			[]Member{local(task("a", 0, 1), 2, 4), local(task("a", 1, 1), 3, 4)}, "0:0/2@0 1:1/2@0",
		},
		"several workers": {[]Member{task("b", 1, 2), task("a", 0, 3)}, "3:0/2@1 0:0/3@0"},
		"several and interleaved": {[]Member{task("a", 0, 2), task("b", 1, 1), task("a", 2, 1)},
			"0:0/3@0 3:0/1@1 2:2/3@0"},
		"no launcher": {[]Member{alone(2), alone(1), alone(4)},
			"0:0/2@0 2:0/1@1 3:0/4@2"},
		"natural order of names": {
			[]Member{named(alone(1), "n10"), hosting(named(alone(1), "n9")), named(alone(1), "m2b"),
				named(alone(1), "n")},
			"3:0/1@3 2:0/1@2 0:0/1@0 1:0/1@1",
		},
		"the store's node first": {
			[]Member{named(alone(1), "n1"), atStore(named(alone(1), "n3")), named(alone(1), "n2")},
			"1:0/1@1 0:0/1@0 2:0/1@2",
		},
		"equal names": {
			[]Member{at(alone(1), "10.0.0.10"), hosting(alone(1)), at(alone(1), "10.0.0.1")},
			"2:0/1@2 1:0/1@1 0:0/1@0",
		},
		"given node ranks": {
			[]Member{atStore(numbered(alone(2), 2)), numbered(alone(1), 0), numbered(alone(4), 1)},
			"5:0/2@2 0:0/1@0 1:0/4@1",
		},
		"given, on one node": {
			[]Member{numbered(task("a", Unknown, 2), 2), numbered(task("b", Unknown, 1), 1),
				numbered(task("a", Unknown, 1), 0)},
			"1:1/3@0 3:0/1@1 0:0/3@0",
		},
		"node ranks": {
			[]Member{numbered(task("c", 0, 1), 2), numbered(task("a", 1, 1), 0),
				numbered(task("b", 2, 1), 1)},
			"0:0/1@0 1:0/1@1 2:0/1@2",
		},
		"node ranks with several workers": {
			[]Member{numbered(task("b", 1, 2), 0), numbered(task("a", 0, 2), 1)},
			"2:0/2@1 0:0/2@0",
		},
		"node ranks with cyclic ranks": {
			[]Member{numbered(task("b", 0, 1), 1), numbered(task("a", 1, 1), 0),
				numbered(task("b", 2, 1), 1), numbered(task("a", 3, 1), 0)},
			"0:0/2@0 1:0/2@1 2:1/2@0 3:1/2@1",
		},
		"equal node ranks": {
			[]Member{numbered(task("a", 0, 1), 0), numbered(task("b", 1, 1), 0)}, "0:0/1@0 1:0/1@1",
		},
		"node rank of one node": {[]Member{numbered(task("a", 0, 1), 1), task("b", 1, 1)},
			"0:0/1@0 1:0/1@1"},
		"no ranks on shared nodes": {
			[]Member{task("a", Unknown, 1), task("b", Unknown, 1), hosting(task("b", Unknown, 1))},
			"0:0/1@0 1:0/2@1 2:1/2@1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var seats []string
			for _, s := range seated(t, test.members) {
				seats = append(seats, fmt.Sprintf("%d:%d/%d@%d", s.RankOf(0), s.LocalRankOf(0), s.LocalSize,
					s.Node))
			}
			if got := strings.Join(seats, " "); got != test.seats {
				t.Errorf("got  %s\nwant %s", got, test.seats)
			}
		})
	}
}

// seated assigns seats to members, checks all invariants, and returns the seats in the order of
// the members.
func seated(t *testing.T, members []Member) []Seat {
	t.Helper()
	for i := range members {
		members[i].ID = fmt.Sprint("agent-", i)
	}
	w, all, problem := Assign(members, 0)
	if problem != nil {
		t.Fatal(problem.Text)
	}
	var seats []Seat
	size := 0
	for _, m := range members {
		s, ok := all[m.ID]
		if !ok || s.Workers() != m.Workers() {
			t.Errorf("%+v has seat %+v", m, s)
		}
		seats = append(seats, s)
		size += m.Workers()
	}
	if w.Size != size || w.Agents != len(members) || len(all) != len(members) {
		t.Errorf("%d seats of %+v; want size %d", len(all), w, size)
	}
	everyRankOnce(t, seats, w)
	return seats
}

// everyRankOnce checks that the ranks, and the local ranks of each node, are 0 to n-1, and that
// nodes are in the order of their lowest ranks.
func everyRankOnce(t *testing.T, seats []Seat, w World) {
	t.Helper()
	var ranks []int
	local, lowest := map[int][]int{}, map[int]int{}
	for _, s := range seats {
		for i := range s.Workers() {
			ranks = append(ranks, s.RankOf(i))
			local[s.Node] = append(local[s.Node], s.LocalRankOf(i))
		}
		if low, known := lowest[s.Node]; !known || s.First() < low {
			lowest[s.Node] = s.First()
		}
	}
	wantDense(t, "ranks", ranks, w.Size)
	wantDense(t, "nodes", slices.Collect(maps.Keys(local)), w.Nodes)
	for _, s := range seats {
		wantDense(t, fmt.Sprint("local ranks of node ", s.Node), local[s.Node], s.LocalSize)
		if s.Node > 0 && lowest[s.Node] < lowest[s.Node-1] {
			t.Errorf("node %d starts with rank %d, node %d with rank %d", s.Node, lowest[s.Node],
				s.Node-1, lowest[s.Node-1])
		}
	}
}

func wantDense(t *testing.T, what string, got []int, n int) {
	t.Helper()
	slices.Sort(got)
	if len(got) != n {
		t.Errorf("%s %v, want 0 to %d", what, got, n-1)
		return
	}
	for i := range got {
		if got[i] != i {
			t.Errorf("%s %v, want 0 to %d", what, got, n-1)
			return
		}
	}
}

// Each byte is an agent: two bits for the node, two for the slots, one for hosting, the others
// for the local rank. The ranks are a rotation of the order of joining, or unknown. Tasks on a node
// may have one agent in common.
func FuzzAssign(f *testing.F) {
	f.Add([]byte{0}, byte(0), true)
	f.Add([]byte{0, 1, 0, 1}, byte(1), true)
	f.Add([]byte{1, 5, 9, 16, 3}, byte(2), false)
	f.Add([]byte{1, 2, 1, 2, 0}, byte(9), true)
	f.Fuzz(func(t *testing.T, agents []byte, turn byte, ranked bool) {
		if len(agents) == 0 || len(agents) > 64 {
			return
		}
		members := make([]Member, len(agents))
		for i, b := range agents {
			members[i] = task([]string{"", "a", "b", "c"}[b&3], Unknown, 1+int(b>>2&3))
			members[i].Hosting = b&16 != 0
			members[i].Tasks[0].LocalRank, members[i].LocalSize = int(b>>5)-1, int(turn&7)
			if ranked {
				members[i].Tasks[0].Rank = (i + int(turn)) % len(agents)
			}
		}
		if ranked && turn&8 != 0 {
			members = together(members)
		}
		seated(t, members)
	})
}

// together gives all tasks of a node one agent.
func together(members []Member) (all []Member) {
	for _, m := range members {
		i := slices.IndexFunc(all, func(other Member) bool { return m.Node != "" && other.Node == m.Node })
		if i < 0 {
			all = append(all, m)
			continue
		}
		all[i].Tasks = append(all[i].Tasks, m.Tasks...)
	}
	return all
}

func TestNaturalOrder(t *testing.T) {
	sorted := []string{"", "0", "01a", "1a", "2", "10", "a", "a1", "a1b2", "a1b10", "a02", "a10",
		"b", "node99999999999999999998", "node99999999999999999999", "\u00e4"}
	for i, a := range sorted {
		for j, b := range sorted {
			if got, want := NaturalOrder(a, b), cmp.Compare(i, j); got != want {
				t.Errorf("NaturalOrder(%q, %q) is %d, want %d", a, b, got, want)
			}
		}
	}
}

// joinedAgent is the i-th agent, on a node of its own.
func joinedAgent(i int) Member {
	return Member{
		ID: fmt.Sprint("agent-", i), Host: fmt.Sprint("node", i), PID: 1000 + i,
		Tasks: record.Unplaced(1), LocalSize: Unknown, NodeRank: Unknown,
	}
}
