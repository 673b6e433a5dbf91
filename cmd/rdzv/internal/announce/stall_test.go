package announce

import (
	"strings"
	"testing"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/stacks"
)

func TestStallText(t *testing.T) {
	nodes := []stacks.Node{{Host: "node1", Ranks: 8}}
	for rank := range 8 {
		w := stacks.Worker{Rank: rank, Main: stacks.Thread{Does: "waiting for another thread (futex)"}}
		if rank == 2 {
			w.Main.Does = "sleeping (clock_nanosleep)"
		}
		nodes[0].Workers = append(nodes[0].Workers, w)
	}
	e := agent.Stalled{
		Stall:  rdzv.Stall{Silent: rdzv.Seconds(900 * time.Second), Rank: 2, Host: "node1", Reason: "it is elsewhere"},
		Stacks: stacks.Of("train", nodes), Timeout: rdzv.Seconds(15 * time.Minute), Attempt: 1,
	}
	text := StallText(e)
	for _, want := range []string{
		"stalled for 15m0s (--stall-timeout): rank 2 on node1 is behind (it is elsewhere)\n" +
			"attempt 1, --stall-timeout 15m0s\n\njob train: rank 2 (node1) is not where the others are: sleeping",
		"\nrank 2 (node1): sleeping (clock_nanosleep)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report is\n%s\nwant %q in it", text, want)
		}
	}
}

// The line about a stall is below the stacks that the workers print when they are stopped, and is not
// repeated if they print none.
func TestStallBelowStacks(t *testing.T) {
	const line = "rdzv: stalled for 15m0s (--stall-timeout): rank 2 on node1 is behind (it is elsewhere)\n"
	ended := agent.JobEnded{Announce: true, Verdict: &rdzv.Verdict{Kind: rdzv.Stalled, Stall: &rdzv.Stall{
		Silent: rdzv.Seconds(900 * time.Second), Rank: 2, Host: "node1", Reason: "it is elsewhere",
	}}}
	dumps := agent.DumpingStacks{Workers: []agent.WorkerStarted{{Rank: 2}}}
	for _, test := range []struct {
		events []agent.Event
		want   string
	}{
		{[]agent.Event{ended, dumps, agent.Finished{}}, line + "rdzv: rank 2 has not exited; its stacks:\n" + line},
		{[]agent.Event{ended, agent.Finished{}}, line},
	} {
		var out strings.Builder
		words := New(console.To(&out, console.Destination{}))
		for _, e := range test.events {
			words.Event(e)
		}
		if out.String() != test.want {
			t.Errorf("wrote %q, want %q", &out, test.want)
		}
	}
}
