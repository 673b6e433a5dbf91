package record

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// A seat tells the same of its workers as the tasks from which it is made, in few parts.
func TestSeat(t *testing.T) {
	type tasks = []SeatTask
	for name, c := range map[string]struct {
		tasks tasks
		want  string // rank:local rank of each worker, the first rank, and the ranks for people
		parts int
	}{
		"none":        {nil, "[] -1 ", 0},
		"one":         {tasks{{3, 1, 2}}, "[3:1 4:2] 3 3-4", 1},
		"consecutive": {tasks{{0, 0, 1}, {1, 1, 2}, {3, 3, 1}}, "[0:0 1:1 2:2 3:3] 0 0-3", 1},
		"interleaved": {tasks{{1, 0, 1}, {3, 1, 1}}, "[1:0 3:1] 1 1,3", 2},
		"local ranks": {tasks{{1, 1, 1}, {2, 0, 1}}, "[1:1 2:0] 1 1-2", 2},
		"backwards":   {tasks{{5, 0, 1}, {2, 1, 2}}, "[5:0 2:1 3:2] 2 2-3,5", 2},
	} {
		var s Seat
		for _, one := range c.tasks {
			s.Add(one)
		}
		list := []string{}
		for i := range s.Workers() {
			list = append(list, fmt.Sprintf("%d:%d", s.RankOf(i), s.LocalRankOf(i)))
			if s.Index(s.RankOf(i)) != i || !s.Has(s.RankOf(i)) || s.AllRanks()[i] != s.RankOf(i) {
				t.Errorf("%s: worker %d: index %d, ranks %d", name, i, s.Index(s.RankOf(i)), s.AllRanks())
			}
		}
		if got := fmt.Sprintf("%v %d %s", list, s.First(), s.Ranks()); got != c.want || len(s.Tasks) != c.parts {
			t.Errorf("%s: %s in %d parts, want %s in %d", name, got, len(s.Tasks), c.want, c.parts)
		}
		if s.Has(6) || s.RankOf(99) != Unknown || s.LocalRankOf(99) != Unknown {
			t.Errorf("%s: it has a rank 6, or a worker 99", name)
		}
		if back, err := Decode[Seat]([]byte(Encode(s))); err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("%s: %+v, %v after it was encoded, want %+v", name, back, err, s)
		}
	}
}

func TestTasksOfMember(t *testing.T) {
	m := Member{Tasks: []Task{{Rank: 4, LocalRank: 0, Slots: 1}, {Rank: 2, LocalRank: 1, Slots: 3}}}
	if m.Workers() != 4 || m.FirstTask().LocalRank != 1 || !m.Launched() || m.TaskRanks() != "2,4" {
		t.Errorf("%d workers, first %+v, ranks %q", m.Workers(), m.FirstTask(), m.TaskRanks())
	}
	for name, none := range map[string]Member{"no launcher": {Tasks: Unplaced(2)}, "unread": {}} {
		if none.Launched() || none.TaskRanks() != "" || none.FirstTask().Rank != Unknown {
			t.Errorf("%s: %+v", name, none.FirstTask())
		}
	}
	if n := TasksOf(slices.Repeat([]Member{m}, 3)); n != 6 {
		t.Errorf("%d tasks, want 6", n)
	}
}
