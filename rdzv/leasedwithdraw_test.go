package rdzv

import (
	"context"
	"strings"
	"testing"
	"time"
)

// withdrawsIdle makes an agent without workers withdraw, and fails the test if it leaves before a
// leader has decided: here the leader does not answer.
func (p *plain) withdrawsIdle(s *Session) {
	p.t.Helper()
	p.withdraws(s)
	if s.Context().Err() != nil {
		p.t.Errorf("%s has left, but no leader has decided: %v", s.config.Self.ID,
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
			p := startPlain(t)
			all := p.joinReplacing(test.agents, test.spares)
			p.worlds(all)
			p.failAttempt(all, "x", 0)
			p.nextOfAll(all[1:])
			p.kill(all[0].config.Self.ID)
			leaves := all[test.leaves]
			p.withdrawsIdle(leaves)
			p.lose(all[0])
			p.hasLeft(leaves)
			if test.rest == nil {
				first, last := p.arrivesLate(p.again(0, 3)), p.arrivesLate(p.again(2, 3))
				a, b := <-first, <-last
				if a.err != nil || b.err != nil {
					t.Fatal(a.err, b.err)
				}
				now := []*Session{a.session, all[1], b.session}
				p.wantRanks(now, Replaced{"0", "node0", "node0"}, Replaced{"2", "node2", "node2"})
				p.wantDone(now)
				return
			}
			rest := make([]*Session, len(test.rest))
			for i, agent := range test.rest {
				rest[i] = all[agent]
			}
			worlds := p.worlds(rest)
			if a, b := worlds[0].Seat.Rank, worlds[1].Seat.Rank; min(a, b) != 0 || max(a, b) != 1 {
				t.Errorf("ranks %d and %d", a, b)
			}
			p.wantDone(rest)
		})
	}
}

// A leader that leaves between two attempts stays until it has decided that itself. The next leader
// knows that it was not lost.
func TestLeaderWithdrawsBetweenAttempts(t *testing.T) {
	t.Parallel()
	t.Run("for a spare", func(t *testing.T) {
		t.Parallel()
		p := startPlain(t)
		warnings := make(chan error, 10)
		all := make([]*Session, 3)
		for i := range all {
			c := p.replacing(i, 3, 1)
			c.Lead.Warn = func(err error) { warnings <- err }
			all[i] = p.joinWith(p.client(c.Self.ID), c)
		}
		p.worlds(all)
		p.failAttempt(all, "x", 0)
		p.nextOfAll(all[:1])
		p.withdraws(all[0])
		p.hasLeft(all[0])
		p.nextOfAll(all[1:])
		p.wantRanks([]*Session{all[2], all[1]}, Replaced{"0", "node2", "node0"})
		p.wantDone([]*Session{all[2], all[1]})
		close(warnings)
		for err := range warnings {
			if !strings.Contains(err.Error(), "node0 leaves the job: received SIGTERM; node2 takes its place") {
				t.Errorf("warning %q", err)
			}
		}
	})
	t.Run("and is started again", func(t *testing.T) {
		t.Parallel()
		p := startPlain(t)
		all := p.joinReplacing(3, 0)
		p.worlds(all)
		p.failAttempt(all, "x", 0)
		p.nextOfAll(all[:2])
		p.withdraws(all[0])
		p.hasLeft(all[0])
		p.nextOfAll(all[2:])
		a := <-p.arrivesLate(p.again(0, 3))
		if a.err != nil {
			t.Fatal(a.err)
		}
		now := append([]*Session{a.session}, all[1:]...)
		p.wantRanks(now, Replaced{"0", "node0", "node0"})
		p.wantDone(now)
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
			v := startLeased(t, c)
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
			v.plain.withdrawsIdle(leaves)
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
				v.plain.wantNothingLeft()
				return
			}
			v.plain.hasLeft(leaves)
			delete(v.sessions, agents-1)
			v.world(2, map[int]int{1: 0, 2: 1})
			v.end()
		})
	}
}

// A spare withdraws while a worker fails. The verdict is first: the spare withdraws again from the
// next attempt, and nobody takes it for a member of that.
func TestSpareWithdrawsWhileTheAttemptFails(t *testing.T) {
	t.Parallel()
	j, all := withSpare(t, LeaderConfig{Warn: func(error) {}})
	spare := all[3]
	if err := all[0].Fail(j.ctx, Worker{Code: 1, PID: 2000}); err != nil {
		t.Fatal(err)
	}
	if err := spare.withdrawIdle(j.ctx); err != nil { // as if it did not know of the verdict
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
}

// An agent that waits for the place of a lost one has no place in the attempt. It leaves too.
func TestWaitingAgentWithdraws(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.joinReplacing(3, 0)
	p.worlds(all)
	p.lose(all[2])
	p.restartWithout(all[:2])
	c := p.replacing(9, 3, 0)
	c.Self.Slots = 2 // it cannot take over the place
	c.Self.LocalSize = Unknown
	waits := <-p.arrivesLate(c)
	if waits.err != nil {
		t.Fatal(waits.err)
	}
	p.withdraws(waits.session)
	p.hasLeft(waits.session)
	c = p.again(2, 3)
	again := <-p.arrivesLate(c)
	if again.err != nil {
		t.Fatal(again.err)
	}
	all[2] = again.session
	p.worlds(all)
	p.wantDone(all)
}
