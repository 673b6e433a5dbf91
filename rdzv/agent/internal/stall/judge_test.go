package stall

import (
	"testing"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/stacks"
	"rdzv/rdzv/status"
)

// A rank that has printed a traceback is the first suspect, unless that was long before the silence:
// then the program has handled the exception.
func TestTracebackIsFirstSuspect(t *testing.T) {
	at := stacks.Report{Ranks: 3, Groups: []stacks.Group{
		{Workers: []stacks.Worker{{Rank: 0, Host: "node1"}, {Rank: 1, Host: "node1"}}},
		{Workers: []stacks.Worker{{Rank: 2, Host: "node2"}}},
	}}
	w := Watch{Silence: &Silence{}, Timeout: time.Minute}
	for ago, want := range map[float64]rdzv.Stall{
		0:   {Rank: 2, Host: "node2", Reason: "its stack differs from the other 2"},
		90:  {Rank: 1, Host: "node1", Traceback: "ValueError: x"},
		110: {Rank: 1, Host: "node1", Traceback: "ValueError: x"},
		121: {Rank: 2, Host: "node2", Reason: "its stack differs from the other 2"},
	} {
		all := Answer{Silent: time.Minute, Rank: 1, Host: "node1"}
		if ago > 0 {
			all.Traceback = &status.Traceback{Seconds: ago, Exception: "ValueError: x"}
		}
		got := w.judge(at, all)
		got.Collectives = ""
		if got != want {
			t.Errorf("%v s ago: %+v, want %+v", ago, got, want)
		}
	}
}
