package rdzv

import (
	"testing"
	"time"
)

func TestStragglersAreReported(t *testing.T) {
	reported := make(chan Stragglers, 1)
	j := start(t, LeaderConfig{
		Tasks: 3, StragglingAfter: time.Millisecond,
		Notify: func(n Notice) { reported <- n.(Stragglers) },
	})
	two := member(1)
	two.Tasks = Unplaced(2)
	sessions := []*Session{j.join(member(0)), j.join(two), j.join(member(2))}
	j.worlds(sessions)
	if err := sessions[1].Progress(j.ctx, []Worker{{Rank: 2}}); err != nil {
		t.Fatal(err)
	}
	select {
	case s := <-reported:
		if want := "ranks 0 (node0), 1 (node1), 3 (node2) are still running 1ms after rank 2 succeeded"; s.String() != want {
			t.Errorf("got %q, want %q", s, want)
		}
	case <-j.ctx.Done():
		t.Fatal("no stragglers were reported")
	}
	j.settle(sessions[0], succeeded(0))
	j.settle(sessions[1], succeeded(1), succeeded(2))
	j.settle(sessions[2], succeeded(3))
	if v := j.leave(sessions[0]).Verdict; v.Kind != Done {
		t.Errorf("verdict %v", v)
	}
}

func TestStragglersAreStopped(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 3, Rules: Rules{ExitTimeout: 10 * time.Millisecond}})
	sessions := j.agents(3)
	j.worlds(sessions)
	j.settle(sessions[0], succeeded(0))
	v, ok := j.ended(sessions[1]).(*Verdict)
	if want := "ranks 1 (node1), 2 (node2) are still running 10ms after rank 0 succeeded"; !ok ||
		v.Kind != Straggling || v.Error() != want {
		t.Errorf("verdict %+v, want %q", v, want)
	}
	j.settle(sessions[1], stopped(1))
	j.settle(sessions[2], stopped(2))
	each(sessions, func(i int, s *Session) {
		if sum := j.leave(s); sum.Verdict.Kind != Straggling || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	})
}

// A failure that an agent has published with its progress ends the job, also if it has not been
// reported otherwise.
func TestFailureInProgress(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	two := member(1)
	two.Tasks = Unplaced(2)
	sessions := []*Session{j.join(member(0)), j.join(two)}
	j.worlds(sessions)
	ended := []Worker{{Rank: 1}, {Rank: 2, Code: 7}}
	if err := sessions[1].Progress(j.ctx, ended); err != nil {
		t.Fatal(err)
	}
	if v, ok := j.ended(sessions[0]).(*Verdict); !ok || v.Kind != Failed || v.Rank != 2 || v.Code != 7 {
		t.Errorf("the job ended with %+v, want the failure of rank 2", v)
	}
}
