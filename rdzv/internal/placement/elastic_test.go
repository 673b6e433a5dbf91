package placement

import "testing"

// Ranks of the launcher may have gaps, and nodes run different numbers of workers.
func TestSeatsOfAnElasticJob(t *testing.T) {
	var members []Member
	for _, rank := range []int{3, 0, 2} {
		m := joinedAgent(rank)
		m.Node = m.Host
		m.Rank, m.LocalRank, m.LocalSize, m.NodeRank, m.Slots = rank, 0, 1, rank, rank+1
		members = append(members, m)
	}
	w, seats := AssignInTurn(members, false)
	for id, want := range map[string]Seat{
		"agent-0": {Rank: 0, LocalSize: 1, Node: 0, Slots: 1},
		"agent-2": {Rank: 1, LocalSize: 3, Node: 1, Slots: 3},
		"agent-3": {Rank: 4, LocalSize: 4, Node: 2, Slots: 4},
	} {
		if seats[id] != want {
			t.Errorf("%s: %+v, want %+v", id, seats[id], want)
		}
	}
	if w.Size != 8 || w.Nodes != 3 {
		t.Errorf("%+v", w)
	}
}
