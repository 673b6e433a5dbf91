package console

import (
	"strings"
	"testing"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/stacks"
	"rdzv/rdzv/status"
)

// What NCCL says is the first line of rdzv stacks, a column of rdzv status and a line below it.
func TestCollectives(t *testing.T) {
	const behind = "rank 5 is at all_reduce 6649, the other 15 at 6650"
	nodes := hanging(8, 4, false)
	nodes[1].Collectives, nodes[0].Recorders, nodes[0].Dumps = behind, 4, "/logs/a"
	text := StacksTable([]stacks.Report{stacks.Of("train", nodes)}, pageWidth)
	if !strings.HasPrefix(text, "NCCL: "+behind+"\njob train: ") ||
		!strings.HasSuffix(text, "\nflight recorders of 4 ranks write to /logs/a (node1)\n") {
		t.Errorf("rdzv stacks prints\n%s", text)
	}
	j := training(2)
	if text := StatusTable([]status.Job{j}, pageWidth); strings.Contains(text, "COLL") {
		t.Errorf("without NCCL rdzv status prints\n%s", text)
	}
	j.Collectives = behind
	for i := range j.Ranks {
		if i != 3 {
			j.Ranks[i].Collectives = new(int64(6650))
		}
	}
	j.Ranks[5].Collectives = new(int64(6649))
	text = StatusTable([]status.Job{j}, pageWidth)
	for _, want := range []string{"  CPU   COLL\n", "  6649\n", "  6650\n", "  -\n", "\nNCCL: " + behind + "\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("rdzv status prints\n%s\nwant %q in it", text, want)
		}
	}
}

func TestStallText(t *testing.T) {
	e := agent.Stalled{
		Stall:  rdzv.Stall{Silent: rdzv.Seconds(900 * time.Second), Rank: 2, Host: "node1", Reason: "it is elsewhere"},
		Stacks: stacks.Of("train", hanging(8, 4, false)), Timeout: rdzv.Seconds(15 * time.Minute), Attempt: 1,
	}
	text := StallText(e)
	for _, want := range []string{
		"stalled: no rank has written anything for 15m0s (--stall-timeout): rank 2 on node1 is behind; " +
			"it is elsewhere\nattempt 1, --stall-timeout 15m0s\n\njob train: 7 of 8 ranks are at the same place",
		"\nrank 2 (node1): sleeping (clock_nanosleep)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report is\n%s\nwant %q in it", text, want)
		}
	}
}
