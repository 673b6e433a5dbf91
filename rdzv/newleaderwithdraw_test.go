package rdzv

import (
	"context"
	"strings"
	"testing"
	"time"
)

// withdrawsIdle makes an agent without workers withdraw, and fails the test if it leaves before a
// leader has decided: here the leader does not answer.
func (j *job) withdrawsIdle(s *Session) {
	j.t.Helper()
	j.withdraws(s)
	if s.Context().Err() != nil {
		j.t.Errorf("%s has left, but no leader has decided: %v", s.config.Self.ID,
			context.Cause(s.Context()))
	}
}

// hasLeft checks that an agent has left the job, which goes on.
func (j *job) hasLeft(s *Session) {
	j.t.Helper()
	if err := j.ended(s); err != ErrWithdrawn {
		j.t.Errorf("the session of %s ended with %v", s.config.Self.ID, err)
	}
	if _, err := s.Leave(j.ctx); err != ErrWithdrawn {
		j.t.Errorf("%s left with %v", s.config.Self.ID, err)
	}
}

// The leader is lost between two attempts, before it has read that another agent is to leave. The
// next one decides, as it would have.
func TestAgentWithdrawsWhileTheLeaderIsLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		agents, spares int
		leaves         int
		rest           []int // agents in the next attempt; nil: two are started again
	}{
		"it is started again":     {3, 0, 2, nil},
		"a spare takes its place": {4, 2, 1, []int{3, 2}},
		"a spare leaves":          {4, 2, 2, []int{3, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := startPlain(t)
			all := j.joinReplacing(test.agents, test.spares)
			j.worlds(all)
			j.failAttempt(all, "x", 0)
			j.nextOfAll(all[1:])
			j.kill(all[0].config.Self.ID)
			leaves := all[test.leaves]
			j.withdrawsIdle(leaves)
			j.lose(all[0])
			j.hasLeft(leaves)
			if test.rest == nil {
				first, last := j.arrivesLate(j.again(0, 3)), j.arrivesLate(j.again(2, 3))
				a, b := <-first, <-last
				if a.err != nil || b.err != nil {
					t.Fatal(a.err, b.err)
				}
				now := []*Session{a.session, all[1], b.session}
				j.wantRanks(now, Replaced{Ranks: "0", Host: "node0", Lost: "node0"},
					Replaced{Ranks: "2", Host: "node2", Lost: "node2"})
				j.wantDone(now)
				return
			}
			rest := make([]*Session, len(test.rest))
			for i, agent := range test.rest {
				rest[i] = all[agent]
			}
			worlds := j.worlds(rest)
			if a, b := worlds[0].Seat.First(), worlds[1].Seat.First(); min(a, b) != 0 || max(a, b) != 1 {
				t.Errorf("ranks %d and %d", a, b)
			}
			j.wantDone(rest)
		})
	}
}

// A leader that leaves between two attempts stays until it has decided that itself. The next leader
// knows that it was not lost.
func TestLeaderWithdrawsBetweenAttempts(t *testing.T) {
	t.Parallel()
	t.Run("for a spare", func(t *testing.T) {
		t.Parallel()
		j := startPlain(t)
		warnings := make(chan error, 10)
		all := make([]*Session, 3)
		for i := range all {
			c := j.replacing(i, 3, 1)
			c.Lead.Notify = into(warnings)
			all[i] = j.joinWith(j.client(c.Self.ID), c)
		}
		j.worlds(all)
		j.failAttempt(all, "x", 0)
		j.nextOfAll(all[:1])
		j.withdraws(all[0])
		j.hasLeft(all[0])
		j.nextOfAll(all[1:])
		j.wantRanks([]*Session{all[2], all[1]}, Replaced{Ranks: "0", Host: "node2", Lost: "node0"})
		j.wantDone([]*Session{all[2], all[1]})
		close(warnings)
		for err := range warnings {
			if !strings.Contains(err.Error(), "node0 leaves the job: received SIGTERM; node2 takes its place") {
				t.Errorf("warning %q", err)
			}
		}
	})
	t.Run("and is started again", func(t *testing.T) {
		t.Parallel()
		j := startPlain(t)
		all := j.joinReplacing(3, 0)
		j.worlds(all)
		j.failAttempt(all, "x", 0)
		j.nextOfAll(all[:2])
		j.withdraws(all[0])
		j.hasLeft(all[0])
		j.nextOfAll(all[2:])
		a := <-j.arrivesLate(j.again(0, 3))
		if a.err != nil {
			t.Fatal(a.err)
		}
		now := append([]*Session{a.session}, all[1:]...)
		j.wantRanks(now, Replaced{Ranks: "0", Host: "node0", Lost: "node0"})
		j.wantDone(now)
	})
}

// The same in a job with a variable number of agents.
func TestElasticAgentWithdrawsWhileTheLeaderIsLost(t *testing.T) {
	t.Parallel()
	for name, agents := range map[string]int{"and enough are left": 4, "and too few are left": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := elastic(agents)
			c.LastCall = time.Hour
			v := vary(t, startLeased, c)
			first := map[int]int{}
			for i := range agents {
				v.join(i)
				first[i] = i
			}
			v.world(agents, first)
			if err := v.sessions[1].Fail(v.ctx, Worker{Rank: 1, Code: 7}); err != nil {
				t.Fatal(err)
			}
			for i, s := range v.sessions {
				v.ended(s)
				v.settle(s, Worker{Rank: i, Code: 7})
			}
			for i := 1; i < agents; i++ {
				v.restart(i)
			}
			v.kill("agent-0")
			leaves := v.sessions[agents-1]
			v.withdrawsIdle(leaves)
			v.lose(0)
			if agents == 3 {
				for i, s := range v.sessions {
					if verdict, _ := v.ended(s).(*Verdict); verdict == nil || verdict.Kind != Ended ||
						verdict.Withdrawn {
						t.Errorf("agent %d was told %v", i, verdict)
					}
					v.settle(s)
				}
				for _, s := range v.sessions {
					if sum := v.leave(s); sum.Code != 143 {
						t.Errorf("%+v", sum)
					}
				}
				v.wantNothingLeft()
				return
			}
			v.hasLeft(leaves)
			delete(v.sessions, agents-1)
			v.world(2, map[int]int{1: 0, 2: 1})
			v.end()
		})
	}
}

// A spare withdraws while a worker fails. The verdict is first: the spare withdraws again from the
// next attempt, and nobody takes it for a member of that.
func TestSpareWithdrawsWhileTheAttemptFails(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j, all := withSpare(t, start, LeaderConfig{})
		spare := all[3]
		if err := all[0].Fail(j.ctx, Worker{Code: 1, PID: 2000}); err != nil {
			t.Fatal(err)
		}
		if err := spare.outcomes.withdraw(j.ctx); err != nil { // as if it did not know of the verdict
			t.Fatal(err)
		}
		if v, _ := j.ended(spare).(*Verdict); v == nil || v.Kind != Failed {
			t.Fatalf("the spare was told %v", v)
		}
		j.settleWorking(all)
		for i, s := range all {
			all[i] = j.nextOf(i, s)
		}
		j.withdraws(all[3])
		j.hasLeft(all[3])
		j.worlds(all[:3])
		j.finish(all[:3], succeeded)
	})
}

// An agent that waits for the place of a lost one has no place in the attempt. It leaves too.
func TestWaitingAgentWithdraws(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.joinReplacing(3, 0)
	j.worlds(all)
	j.lose(all[2])
	j.restartWithout(all[:2])
	c := j.replacing(9, 3, 0)
	c.Self.Tasks = Unplaced(2) // it cannot take over the place
	c.Self.LocalSize = Unknown
	waits := <-j.arrivesLate(c)
	if waits.err != nil {
		t.Fatal(waits.err)
	}
	j.withdraws(waits.session)
	j.hasLeft(waits.session)
	c = j.again(2, 3)
	again := <-j.arrivesLate(c)
	if again.err != nil {
		t.Fatal(again.err)
	}
	all[2] = again.session
	j.worlds(all)
	j.wantDone(all)
}
