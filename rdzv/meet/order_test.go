package meet

import (
	"encoding/hex"
	"fmt"
	"sync"
	"testing"

	"rdzv/rdzv/meet/internal/gate"
)

// The order of agents is that of their node ranks, and then the natural order of their hosts.
func TestOrder(t *testing.T) {
	inOrder := []Config{
		{NodeRank: 0, Host: "node9"}, {NodeRank: 1, Host: "node8"}, {NodeRank: 300, Host: "a"},
		{NodeRank: -1}, {NodeRank: -1, Host: "a"}, {NodeRank: -1, Host: "a1b2"},
		{NodeRank: -1, Host: "a1b10"}, {NodeRank: -1, Host: "a02"}, {NodeRank: -1, Host: "a10"},
		{NodeRank: -1, Host: "node1.cluster"}, {NodeRank: -1, Host: "node2"},
		{NodeRank: -1, Host: "node10"},
	}
	var last string
	for i, c := range inOrder {
		var id gate.Instance
		order := orderOf(c.NodeRank, c.Host)
		copy(id[:], order[:])
		if next := hex.EncodeToString(id[:]); i > 0 && (!before(last, next) || before(next, last)) {
			t.Errorf("%+v is not before %+v", inOrder[i-1], c)
		} else {
			last = next
		}
	}
}

// If all agents are there, rank 0's hosts: that with node rank 0, or on the first of the hosts.
func TestRank0Hosts(t *testing.T) {
	for i, rank0 := range []int{0, 1, 0, 2, 0, 0} {
		withNodeRanks := i%2 == 1
		t.Run(fmt.Sprint(rank0, " ", withNodeRanks), func(t *testing.T) {
			meetings := make([]*Meeting, 3)
			var group sync.WaitGroup
			for k := range meetings {
				c := noLauncherConfig(t, k, len(meetings))
				c.Host = fmt.Sprint("node", 9+k)
				if withNodeRanks {
					c.NodeRank = (k - rank0 + len(meetings)) % len(meetings)
				}
				store := newFakeStore(t, c.Host)
				group.Go(func() { meetings[k] = mustMeet(t, c, store.host) })
			}
			group.Wait()
			for k, m := range meetings {
				if m.Hosting != (k == rank0) {
					t.Errorf("node%d hosts: %t", 9+k, m.Hosting)
				}
			}
		})
	}
}
