package layout

import (
	"strings"
	"testing"

	"rdzv/envmap"
)

// The tasks of a node may share an agent in a job whose number of nodes varies, if each node has as
// many of them.
func TestNodeRangeOfTasks(t *testing.T) {
	for name, test := range map[string]struct {
		size, nodes, local, sharing int
		least                       int // number of tasks
		want                        string
	}{
		"one on each node":    {3, 3, 1, 0, 2, ""},
		"they share an agent": {6, 3, 2, 2, 4, ""},
		"they do not":         {6, 3, 2, 0, 0, "has started 2 tasks on this node, and they do not share"},
		"some do not":         {6, 3, 2, 1, 0, "has started 2 tasks on this node, and they do not share"},
		"other nodes":         {4, 2, 2, 2, 0, "has started tasks on 2 nodes"},
		"more on another one": {4, 3, 1, 0, 0, "has started 1 task on this node, and 4 in all"},
		"other numbers":       {7, 3, 2, 2, 0, "has started 2 tasks on this node, and 7 in all"},
	} {
		l := Layout{
			Given: Given{Nodes: 3, MinNodes: 2}, Tasks: test.sharing,
			Placement: envmap.Placement{
				Launcher: envmap.Slurm, Size: test.size, Nodes: test.nodes, LocalSize: test.local,
			},
		}
		switch err := l.Count(); {
		case test.want == "" && (err != nil || l.MinTasks() != test.least || l.Agents != test.size):
			t.Errorf("%s: %d to %d tasks, %v, want %d to %d", name, l.MinTasks(), l.Agents, err,
				test.least, test.size)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// Under srun spares are possible with several tasks on each node, if these share an agent.
func TestSparesOfTasks(t *testing.T) {
	for sharing, want := range map[int]string{
		2: "", 1: "srun has started 2 tasks on this node, and they do not share an agent",
	} {
		l := Layout{
			Given: Given{Spares: 1}, Tasks: sharing,
			Placement: envmap.Placement{Launcher: envmap.Slurm, Size: 6, Nodes: 3, LocalSize: 2},
		}
		err := l.Count()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d of 2 tasks share an agent: %v, want %q", sharing, err, want)
		}
	}
}
