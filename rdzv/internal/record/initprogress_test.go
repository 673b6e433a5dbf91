package record

import (
	"slices"
	"testing"
	"time"
)

func TestInitProgressText(t *testing.T) {
	node := func(host, ranks string) NodeRanks { return NodeRanks{Host: host, Ranks: ranks} }
	for _, row := range []struct {
		progress InitProgress
		want     string
	}{
		{
			InitProgress{Ranks: 8, Reached: 7, Missing: []NodeRanks{node("node2", "5")}},
			"rank 5 (node2) has not reached init_process_group; 7 of 8 ranks have been waiting " +
				"for 12s",
		},
		{
			InitProgress{Ranks: 2, Reached: 1, Missing: []NodeRanks{node("node2", "1")}},
			"rank 1 (node2) has not reached init_process_group; 1 of 2 ranks has been waiting " +
				"for 12s",
		},
		{
			InitProgress{
				Ranks: 64, Reached: 4, More: 1,
				Missing: slices.Repeat([]NodeRanks{node("n", "4-5")}, 2),
			},
			"ranks 4-5 (n), 4-5 (n) and 1 more node have not reached init_process_group" +
				"; 4 of 64 ranks have been waiting for 12s",
		},
		{
			InitProgress{Ranks: 2, Absent: true, Host: "node1", Master: "10.77.0.11:41235"},
			"rank 0 (node1) does not listen on MASTER_PORT (10.77.0.11:41235) yet, 12s after its start",
		},
		{
			InitProgress{Ranks: 2, Reached: 2},
			"all 2 ranks have reached init_process_group by now, 12s after rank 0 did",
		},
	} {
		row.progress.Waited = Seconds(12*time.Second + 300*time.Millisecond)
		if got := row.progress.String(); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
