package placement

import (
	"reflect"
	"testing"

	"rdzv/rdzv/internal/record"
)

// Ranks of the launcher may have gaps, and nodes run different numbers of workers.
func TestSeatsOfAnElasticJob(t *testing.T) {
	var members []Member
	for _, rank := range []int{3, 0, 2} {
		m := joinedAgent(rank)
		m.Node = m.Host
		m.LocalSize, m.NodeRank = 1, rank
		m.Tasks = []record.Task{{Rank: rank, LocalRank: 0, Slots: rank + 1}}
		members = append(members, m)
	}
	w, seats := AssignInTurn(members, false)
	for id, want := range map[string]Seat{
		"agent-0": {Tasks: []record.SeatTask{{Rank: 0, Slots: 1}}, LocalSize: 1, Node: 0},
		"agent-2": {Tasks: []record.SeatTask{{Rank: 1, Slots: 3}}, LocalSize: 3, Node: 1},
		"agent-3": {Tasks: []record.SeatTask{{Rank: 4, Slots: 4}}, LocalSize: 4, Node: 2},
	} {
		if !reflect.DeepEqual(seats[id], want) {
			t.Errorf("%s: %+v, want %+v", id, seats[id], want)
		}
	}
	if w.Size != 8 || w.Nodes != 3 {
		t.Errorf("%+v", w)
	}
}
