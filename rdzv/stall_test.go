package rdzv

import (
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/restart"
)

// A stall ends an attempt, for all agents with the same verdict, and as often as restarts are left
// another attempt follows: two stalls are never the same bug.
func TestStall(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2, Rules: Rules{Restarts: restart.Policy{Max: 2}}})
	sessions := j.agents(2)
	for attempt := range 3 {
		j.worlds(sessions)
		stall := Stall{
			Silent: Seconds(3 * time.Second), Rank: 1, Host: "node1", Reason: "its stack differs from the other 3",
			Collectives: strings.Repeat("x", 3*record.MaxText),
		}
		if err := sessions[0].Stall(j.ctx, stall, time.Second); err != nil {
			t.Fatal(err)
		}
		if err := sessions[1].Fail(j.ctx, Worker{Rank: 1, Code: 1}); err != nil { // too late
			t.Fatal(err)
		}
		for i, sum := range j.finish(sessions, succeeded) {
			v := sum.Verdict
			if v == nil || v.Kind != Stalled || v.Code != StalledCode || v.Stall == nil || v.Stall.Rank != 1 ||
				len(v.Stall.Collectives) > record.MaxText {
				t.Fatalf("agent %d has the verdict %+v", i, v)
			}
			if again := sum.Restart != nil; again != (attempt < 2) {
				t.Fatalf("agent %d, attempt %d: restart %t, %q", i, attempt, again, sum.NoRestart)
			}
		}
		if attempt < 2 {
			for i, s := range sessions {
				sessions[i] = j.next(i, s)
			}
		}
	}
}

func TestStallText(t *testing.T) {
	for _, c := range []struct {
		stall Stall
		want  string
	}{
		{Stall{Silent: Seconds(15 * time.Minute), Rank: 5, Host: "node2", Collectives: "NCCL: rank 5 is at 1"},
			"stalled for 15m0s (--stall-timeout): rank 5 on node2 is behind; NCCL: rank 5 is at 1"},
		{Stall{Silent: Seconds(time.Minute), Rank: 5, Reason: "its stack differs from the other 3", Collectives: "none"},
			"stalled for 1m0s (--stall-timeout): rank 5 is behind (its stack differs from the other 3)"},
		{Stall{Silent: Seconds(time.Minute), Rank: Unknown, Collectives: "NCCL: ranks 1,2 are behind"},
			"stalled for 1m0s (--stall-timeout): NCCL: ranks 1,2 are behind"},
		{Stall{Silent: Seconds(1499 * time.Millisecond), Rank: Unknown, Reason: "nothing is known", Collectives: "none"},
			"stalled for 1s (--stall-timeout): nothing is known"},
		{Stall{Silent: Seconds(time.Minute), Rank: 1, Host: "node2", Traceback: "ValueError: x", Collectives: "none"},
			"stalled for 1m0s (--stall-timeout): rank 1 on node2 printed a traceback and is still running: ValueError: x"},
		{Stall{Silent: Seconds(time.Hour), Rank: 0}, "stalled for 1h0m0s (--stall-timeout): rank 0 is behind"},
	} {
		v := Verdict{Kind: Stalled, Stall: &c.stall}
		if got := v.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
