package placement

import (
	"fmt"
	"testing"

	"rdzv/rdzv/internal/record"
)

func TestLayout(t *testing.T) {
	for want, ranks := range map[string][]int{
		"0": {0}, "0-3": {2, 0, 3, 1}, "0,2": {0, 2}, "0-1,4-5,8": {0, 1, 4, 5, 8},
		"0,2,...,14": {0, 2, 4, 6, 8, 10, 12, 14},
	} {
		if got := record.Ranges(ranks); got != want {
			t.Errorf("record.Ranges(%d) is %q, want %q", ranks, got, want)
		}
	}
	var members []Member
	for rank := range 18 {
		members = append(members, task(fmt.Sprint("node", rank/2), rank, 1))
	}
	for n, want := range map[int]string{
		16: "[{node0 0-1} {node1 2-3} {node2 4-5} {node3 6-7} {node4 8-9} {node5 10-11} {node6 " +
			"12-13} {node7 14-15}]",
		18: "[{node0 0-1} {node1 2-3} {node8 16-17}]",
	} {
		for i := range members {
			members[i].ID = fmt.Sprint("agent-", i)
		}
		w, _, problem := Assign(members[:n], 0)
		if got := fmt.Sprint(w.Layout); problem != nil || got != want {
			t.Errorf("%d ranks: layout %s, want %s", n, got, want)
		}
	}
}
