package placement

import (
	"reflect"
	"strings"
	"testing"

	"rdzv/rdzv/internal/record"
)

func TestWhichNodesAreSpares(t *testing.T) {
	at := func(hosting int, slots ...int) (members []Member) {
		for i, n := range slots {
			m := joinedAgent(i)
			m.Node = m.Host
			m.Hosting, m.Tasks = i == hosting, record.Unplaced(n)
			members = append(members, m)
		}
		return members
	}
	two := at(0, 1, 1, 1)
	two[2].Node = "node1"
	for name, test := range map[string]struct {
		members []Member
		spares  int
		want    []string
		problem string
	}{
		"the last":                 {at(0, 2, 2, 2, 2), 2, []string{"node2", "node3"}, ""},
		"not the store's":          {at(3, 1, 1, 1, 1), 2, []string{"node1", "node2"}, ""},
		"not the store's of two":   {at(1, 1, 1), 1, []string{"node0"}, ""},
		"other numbers of workers": {at(0, 2, 2, 3), 1, nil, "node0 runs 2 workers and node2 3"},
		"two agents on a node":     {two, 1, nil, "2 agents on node1"},
	} {
		w, seats, problem := Assign(test.members, test.spares)
		if (problem != nil) != (test.problem != "") ||
			problem != nil && !strings.Contains(problem.Text, test.problem) {
			t.Errorf("%s: %v, want %q", name, problem, test.problem)
		}
		if !reflect.DeepEqual(w.Spares, test.want) {
			t.Errorf("%s: spares %q, want %q (%v)", name, w.Spares, test.want, seats)
		}
	}
}
