package rdzv

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/presence"
)

// shortly bounds what happens within milliseconds, and would take the peer
// timeout of 10 s or the settle timeout of 15 s if the mechanism did not work.
const shortly = 5 * time.Second

// soon fails the test when do takes longer than shortly.
func soon(t *testing.T, what string, do func()) {
	t.Helper()
	began := time.Now()
	do()
	if took := time.Since(began); took > shortly {
		t.Errorf("%s took %v", what, took)
	}
}

func wantLost(t *testing.T, cause error, who string) {
	t.Helper()
	text := "lost " + who + ": it disconnected unexpectedly"
	if v, ok := cause.(*Verdict); !ok || v.Kind != Lost || v.Error() != text {
		t.Errorf("the job ended with %#v, want a loss: %s", cause, text)
	}
}

func TestAnAgentDiesBeforeItSaysWhatItIs(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 2})
	s := j.agents(1)[0]
	a, err := presence.Open(j.ctx, j.client("agent-1").ActiveConnection(), "agent-1")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Abandon()
	soon(t, "the news", func() {
		j.kill("agent-1")
		wantLost(t, j.ended(s), "an agent that was joining")
	})
	soon(t, "leaving", func() { j.settle(s); j.leave(s) })
}

func TestAnAgentDiesWhileOthersAreMissing(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 3})
	sessions := j.agents(2)
	soon(t, "the news", func() {
		j.kill("agent-1")
		wantLost(t, j.ended(sessions[0]), "an agent (pid 1001 on node1)")
	})
	if cause := j.ended(sessions[1]); cause != ErrStoreLost {
		t.Errorf("the dead agent's own job ended with %v", cause)
	}
	soon(t, "leaving", func() { j.settle(sessions[0]); j.leave(sessions[0]) })
}

func TestAnAgentDiesAtWork(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 4})
	sessions := j.agents(4)
	j.worlds(sessions)
	soon(t, "the news", func() {
		j.kill("agent-2")
		for _, i := range []int{0, 1, 3} {
			wantLost(t, j.ended(sessions[i]), "the agent of rank 2 (pid 1002 on node2)")
		}
	})
	rest := []*Session{sessions[0], sessions[1], sessions[3]}
	soon(t, "leaving", func() {
		sums := j.finish(rest, func(i int) Worker { return []Worker{stopped(0), {Rank: 1, Code: 3}, stopped(3)}[i] })
		if f := sums[0].Failures; len(f) != 1 || f[0].Rank != 1 || !sums[0].Settled {
			t.Errorf("the store's host reports %+v", sums[0])
		}
	})
}

// Who has settled is waited for by nobody.
func TestAnAgentThatSettledIsNotLost(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 3})
	sessions := j.agents(3)
	j.worlds(sessions)
	j.settle(sessions[2], succeeded(2))
	j.kill("agent-2")
	j.ended(sessions[2])
	for i, sum := range j.finish(sessions[:2], succeeded) {
		if sum.Verdict.Kind != Done || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum.Verdict)
		}
	}
}

func TestAnAgentDiesAfterTheVerdict(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 3})
	sessions := j.agents(3)
	j.worlds(sessions)
	if err := sessions[0].Fail(j.ctx, Worker{Rank: 0, Code: 3}); err != nil {
		t.Fatal(err)
	}
	j.ended(sessions[2])
	j.kill("agent-2")
	soon(t, "leaving", func() {
		for i, sum := range j.finish(sessions[:2], stopped) {
			if sum.Verdict.Kind != Failed || !sum.Settled {
				t.Errorf("agent %d: %+v", i, sum)
			}
		}
	})
}

func TestAnAgentThatLeavesWithoutAWordIsLost(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 2})
	sessions := j.agents(2)
	j.worlds(sessions)
	at, cancel := context.WithCancelCause(j.ctx)
	why := errors.New("enough")
	cancel(why)
	if _, err := sessions[1].Leave(at); err != why {
		t.Errorf("Leave: %v", err)
	}
	soon(t, "the news", func() {
		wantLost(t, j.ended(sessions[0]), "the agent of rank 1 (pid 1001 on node1)")
	})
}

func TestAnAgentThatDoesNotRunItsWorkers(t *testing.T) {
	for name, test := range map[string]struct {
		agents, slots int
		ran           []Worker
		want          string
	}{
		"before the world": {3, 1, nil, "an agent (pid 1001 on node1) did not run its worker"},
		"after the world":  {2, 2, nil, "the agent of ranks 1 to 2 (pid 1001 on node1) did not run its workers"},
		"one of two": {2, 2, []Worker{succeeded(1)},
			"the agent of ranks 1 to 2 (pid 1001 on node1) ran only 1 of its 2 workers"},
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, LeaderConfig{Agents: test.agents})
			host, other := member(0), member(1)
			host.Hosting, other.Slots = true, test.slots
			sessions := []*Session{j.join(host), j.join(other)}
			if test.agents == 2 {
				j.worlds(sessions)
			}
			j.settle(sessions[1], test.ran...)
			if v, ok := j.ended(sessions[0]).(*Verdict); !ok || v.Kind != Unready || v.Error() != test.want {
				t.Errorf("%v, want %q", v, test.want)
			}
			j.settle(sessions[0])
			each(sessions, func(_ int, s *Session) { j.leave(s) })
		})
	}
}

func TestAnAgentThatNeverSettlesIsNamed(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 3, SettleTimeout: 100 * time.Millisecond})
	sessions := j.agents(3)
	j.worlds(sessions)
	if err := sessions[0].End(j.ctx, 15); err != nil {
		t.Fatal(err)
	}
	for i, sum := range j.finish(sessions[:2], stopped) {
		if sum.Settled || sum.Unsettled != "the agent of rank 2 (pid 1002 on node2)" {
			t.Errorf("agent %d: unsettled %q", i, sum.Unsettled)
		}
	}
	if err := <-j.led; err != nil {
		t.Errorf("the leader: %v", err)
	}
}

// A leader that is busy or broken holds nobody for ever.
func TestLeavingIsBounded(t *testing.T) {
	t.Parallel()
	j := start(t, LeaderConfig{Agents: 2, SettleTimeout: patience})
	a := j.join(member(0))
	b, err := Join(j.ctx, j.client("agent-1"), Config{Job: "test", Self: member(1), SettleTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	j.worlds([]*Session{a, b})
	if err := a.End(j.ctx, 15); err != nil {
		t.Fatal(err)
	}
	j.settle(b, stopped(1))
	if sum, err := b.Leave(j.ctx); err == nil || sum.Verdict == nil || !strings.Contains(err.Error(), "2.1s") {
		t.Errorf("left with %+v, %v", sum, err)
	}
}
