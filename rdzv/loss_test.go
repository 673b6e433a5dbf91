package rdzv

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/presence"
)

// within5s fails the test if do takes longer than 5 s. What the tests pass takes
// milliseconds, but without the mechanism under test it would take the peer timeout of 10 s
// or the settle timeout of 15 s.
func within5s(t *testing.T, what string, do func()) {
	t.Helper()
	began := time.Now()
	do()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%s took %v", what, took)
	}
}

func wantLost(t *testing.T, cause error, who string) {
	t.Helper()
	wantLostBecause(t, cause, who, "it disconnected unexpectedly")
}

func wantLostBecause(t *testing.T, cause error, who, why string) {
	t.Helper()
	text := "lost " + who + ": " + why
	if v, ok := cause.(*Verdict); !ok || v.Kind != Lost || v.Error() != text {
		t.Errorf("the job ended with %#v, want a loss: %s", cause, text)
	}
}

func TestAgentLostBeforeItsMember(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	s := j.agents(1)[0]
	a, err := presence.Open(j.ctx, j.client("agent-1").ActiveConnection(), "agent-1", func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Abandon()
	within5s(t, "the end of the job", func() {
		j.kill("agent-1")
		wantLost(t, j.ended(s), "an agent that was joining")
	})
	within5s(t, "leaving", func() { j.settle(s); j.leave(s) })
}

func TestAgentLostBeforeTheWorld(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 3})
	sessions := j.agents(2)
	within5s(t, "the end of the job", func() {
		j.kill("agent-1")
		wantLost(t, j.ended(sessions[0]), "an agent (pid 1001 on node1)")
	})
	if cause := j.ended(sessions[1]); cause != ErrStoreLost {
		t.Errorf("the session of the lost agent ended with %v", cause)
	}
	within5s(t, "leaving", func() { j.settle(sessions[0]); j.leave(sessions[0]) })
}

func TestAgentLostAfterTheWorld(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, LeaderConfig{Tasks: 4})
		sessions := j.agents(4)
		j.worlds(sessions)
		within5s(t, "the end of the job", func() {
			j.lose(sessions[2])
			for _, i := range []int{0, 1, 3} {
				wantLost(t, j.ended(sessions[i]), "the agent of rank 2 (pid 1002 on node2)")
			}
		})
		rest := []*Session{sessions[0], sessions[1], sessions[3]}
		within5s(t, "leaving", func() {
			sums := j.finish(rest, func(i int) Worker { return []Worker{stopped(0), {Rank: 1, Code: 3}, stopped(3)}[i] })
			if f := sums[0].Failures; len(f) != 1 || f[0].Rank != 1 || !sums[0].Settled {
				t.Errorf("the host of the store reports %+v", sums[0])
			}
		})
	})
}

// No agent waits for one that has settled.
func TestSettledAgentIsNotLost(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, LeaderConfig{Tasks: 3})
		sessions := j.agents(3)
		j.worlds(sessions)
		j.settle(sessions[2], succeeded(2))
		j.lose(sessions[2])
		j.ended(sessions[2])
		for i, sum := range j.finish(sessions[:2], succeeded) {
			if sum.Verdict.Kind != Done || !sum.Settled {
				t.Errorf("agent %d: %+v", i, sum.Verdict)
			}
		}
	})
}

func TestAgentLostAfterTheVerdict(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, LeaderConfig{Tasks: 3})
		sessions := j.agents(3)
		j.worlds(sessions)
		if err := sessions[0].Fail(j.ctx, Worker{Rank: 0, Code: 3}); err != nil {
			t.Fatal(err)
		}
		j.ended(sessions[2])
		j.lose(sessions[2])
		within5s(t, "leaving", func() {
			for i, sum := range j.finish(sessions[:2], stopped) {
				if sum.Verdict.Kind != Failed || !sum.Settled {
					t.Errorf("agent %d: %+v", i, sum)
				}
			}
		})
	})
}

func TestAgentThatLeavesWithoutSettlingIsLost(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, LeaderConfig{Tasks: 2})
		sessions := j.agents(2)
		j.worlds(sessions)
		ctx, cancel := context.WithCancelCause(j.ctx)
		why := errors.New("canceled")
		cancel(why)
		if _, err := sessions[1].Leave(ctx); err != why {
			t.Errorf("Leave: %v", err)
		}
		within5s(t, "the end of the job", func() {
			wantLost(t, j.ended(sessions[0]), "the agent of rank 1 (pid 1001 on node1)")
		})
	})
}

func TestAgentThatDoesNotRunItsWorkers(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		for name, test := range map[string]struct {
			agents, slots int
			ran           []Worker
			want          string
		}{
			"before the world": {3, 1, nil, "an agent (pid 1001 on node1) did not run its worker"},
			"after the world": {2, 2, nil,
				"the agent of ranks 1-2 (pid 1001 on node1) did not run its workers"},
			"one of two": {2, 2, []Worker{succeeded(1)},
				"the agent of ranks 1-2 (pid 1001 on node1) ran only 1 of its 2 workers"},
		} {
			t.Run(name, func(t *testing.T) {
				j := start(t, LeaderConfig{Tasks: test.agents})
				host, other := member(0), member(1)
				host.Hosting, other.Tasks = true, Unplaced(test.slots)
				sessions := []*Session{j.join(host), j.join(other)}
				if test.agents == 2 {
					j.worlds(sessions)
				}
				j.settle(sessions[1], test.ran...)
				if v, ok := j.ended(sessions[0]).(*Verdict); !ok || v.Kind != Unready ||
					v.Error() != test.want {
					t.Errorf("%v, want %q", v, test.want)
				}
				j.settle(sessions[0])
				each(sessions, func(_ int, s *Session) { j.leave(s) })
			})
		}
	})
}

func TestUnsettledAgentIsNamed(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		// Two agents settle in this time, also on a busy machine.
		j := start(t, LeaderConfig{Tasks: 3, SettleTimeout: 2 * time.Second})
		sessions := j.agents(3)
		j.worlds(sessions)
		if err := sessions[0].End(j.ctx, 15, false); err != nil {
			t.Fatal(err)
		}
		for i, sum := range j.finish(sessions[:2], stopped) {
			if sum.Settled || sum.Unsettled != "the agent of rank 2 (pid 1002 on node2)" {
				t.Errorf("agent %d: unsettled %q", i, sum.Unsettled)
			}
		}
		j.wantLed()
	})
}

// An agent does not wait forever for a leader that does not answer.
func TestLeaveTimeout(t *testing.T) {
	t.Parallel()
	j := start(t, LeaderConfig{Tasks: 2, SettleTimeout: testTimeout})
	a := j.join(member(0))
	b, err := Join(j.ctx, j.client("agent-1"),
		Config{Job: "test", Self: member(1), SettleTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	j.worlds([]*Session{a, b})
	if err := a.End(j.ctx, 15, false); err != nil {
		t.Fatal(err)
	}
	j.settle(b, stopped(1))
	if sum, err := b.Leave(j.ctx); err == nil || sum.Verdict == nil ||
		!strings.Contains(err.Error(), "2.1s") {
		t.Errorf("left with %+v, %v", sum, err)
	}
}

// The node of an agent is unplugged: the connection stays open without any packets.
func TestUnreachableAgentIsLost(t *testing.T) {
	t.Parallel()
	j := startWith(t, LeaderConfig{Tasks: 3}, presence.MinTimeout)
	sessions := j.agents(3)
	j.worlds(sessions)
	j.freeze("agent-1")
	wantLostBecause(t, j.ended(sessions[0]), "the agent of rank 1 (pid 1001 on node1)", "it was silent for 3s")
	if cause := j.ended(sessions[1]); cause != ErrStoreLost {
		t.Errorf("the unplugged agent: %v", cause)
	}
	rest := []*Session{sessions[0], sessions[2]}
	for i, sum := range j.finish(rest, func(i int) Worker { return stopped(2 * i) }) {
		if sum.Verdict.Kind != Lost || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
}
