package rdzv

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"rdzv/rdzv/internal/registration"
	"rdzv/rdzv/presence"
	"rdzv/rdzv/restart"
)

// replacing is agent i of a job that goes on without an agent: a spare or another agent takes its
// place.
func (j *job) replacing(i, agents, spares int) Config {
	c := j.byHand(i, agents)
	c.Lead.Restarts, c.Lead.Spares = restart.Policy{Max: 9}, spares
	c.Lead.Replaceable = spares == 0
	return c
}

func (j *job) joinReplacing(agents, spares int) []*Session {
	j.t.Helper()
	sessions := make([]*Session, agents)
	for i := range sessions {
		c := j.replacing(i, agents, spares)
		sessions[i] = j.joinWith(j.client(c.Self.ID), c)
	}
	return sessions
}

// again is agent i started again, on the same host.
func (j *job) again(i, agents int) Config {
	c := j.replacing(i, agents, 0)
	c.Self.ID += "-again"
	return c
}

// restartWithout takes the agents whose workers run to the next attempt, after the loss of another
// one.
func (j *job) restartWithout(rest []*Session) {
	j.t.Helper()
	for _, s := range rest {
		if v, lost := j.ended(s).(*Verdict); !lost || v.Kind != Lost {
			j.t.Fatalf("%s was told %v", s.config.Self.ID, v)
		}
	}
	j.finish(rest, stopped)
	j.nextOfAll(rest)
}

// wantRanks checks which agent has which rank.
func (j *job) wantRanks(all []*Session, replaced ...Replaced) {
	j.t.Helper()
	for i, w := range j.worlds(all) {
		if w.Seat.First() != i || w.Size != len(all) || !reflect.DeepEqual(w.Replaced, replaced) {
			j.t.Errorf("%s: seat %+v of %+v", all[i].config.Self.ID, w.Seat, w)
		}
	}
}

func (j *job) wantDone(all []*Session) {
	j.t.Helper()
	for i, sum := range j.finish(all, succeeded) {
		if sum.Verdict == nil || sum.Verdict.Kind != Done || !sum.Settled {
			j.t.Errorf("%s: %+v", all[i].config.Self.ID, sum)
		}
	}
	j.wantNothingLeft()
}

// The leader, whose node runs rank 0, is frozen until its lease has expired, and continues. Whenever
// that happens, a spare or another agent has its place in the attempt that follows.
func TestLeaderIsReplaced(t *testing.T) {
	t.Parallel()
	for name, until := range lossPoints {
		for by, spares := range map[string]int{"a spare": 1, "another agent": 0} {
			t.Run(name+" by "+by, func(t *testing.T) {
				j := startPlain(t)
				all := j.joinReplacing(3+spares, spares)
				j.worlds(all)
				j.failAttempt(all, "x", 0)
				until(j, all)
				running := all[1].haveWorldNow()
				j.expire(all[0])
				var replacement *Session
				rest := all[1:]
				arrived := make(<-chan arrival)
				if spares == 0 {
					c := j.replacing(9, 3, 0)
					arrived = j.arrivesLate(c)
				}
				if running {
					j.restartWithout(rest)
				}
				j.nextOfAll(rest)
				if spares > 0 {
					replacement, rest = rest[2], rest[:2]
				} else if a := <-arrived; a.err != nil {
					t.Fatal(a.err)
				} else {
					replacement = a.session
				}
				now := append([]*Session{replacement}, rest...)
				j.wantRanks(now, Replaced{Ranks: "0", Host: replacement.config.Self.Host, Lost: "node0"})
				if !all[1].Leads() || replacement.Leads() {
					t.Error("the next agent does not lead")
				}
				j.nextOfAll(all[:1])
				if err := j.ended(all[0]); !errors.Is(err, ErrStoreLost) && !isLost(err) {
					t.Errorf("the old leader: %v", err)
				}
				_, _ = all[0].Leave(j.ctx) // whatever it knows
				j.wantDone(now)
			})
		}
	}
}

// haveWorldNow tells whether the workers of this attempt run.
func (s *Session) haveWorldNow() bool {
	return s.signals.World.Load() != nil && s.leave.summary.Restart == nil
}

// A failure is followed by the loss of the leader, before all have settled: a spare takes its place.
func TestLeaderIsReplacedBeforeTheDecision(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.joinReplacing(3, 1)
	j.worlds(all)
	if err := all[1].Fail(j.ctx, Worker{Rank: 1, Code: 7, Text: "x"}); err != nil {
		t.Fatal(err)
	}
	j.ended(all[2])
	j.lose(all[0])
	rest := all[1:]
	for i, sum := range j.finish(rest, func(i int) Worker { return Worker{Rank: 1, Code: 7} }) {
		if sum.Verdict.Kind != Failed || sum.Restart == nil {
			t.Fatalf("agent %d: %+v", i+1, sum)
		}
	}
	j.nextOfAll(rest)
	now := []*Session{all[2], all[1]}
	j.wantRanks(now, Replaced{Ranks: "0", Host: "node2", Lost: "node0"})
	j.wantDone(now)
}

// The leader and another agent are lost at once: two spares run their ranks, and one of them leads.
// The next loss ends the job.
func TestTwoSparesTakeOver(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.joinReplacing(4, 2)
	j.worlds(all)
	j.lose(all[0])
	j.lose(all[1])
	rest := all[2:]
	j.restartWithout(rest)
	j.wantRanks(rest, Replaced{Ranks: "0", Host: "node2", Lost: "node0"},
		Replaced{Ranks: "1", Host: "node3", Lost: "node1"})
	if !rest[0].Leads() {
		t.Error("the first of the spares does not lead")
	}
	j.lose(rest[0])
	wantLost(t, j.ended(rest[1]), "the agent of rank 0 (pid 1002 on node2)")
	j.settle(rest[1], stopped(1))
	if sum := j.leave(rest[1]); sum.NoRestart != restart.Lost || sum.Restart != nil {
		t.Errorf("%+v", sum)
	}
	j.wantNothingLeft()
}

// The loss of a spare is no failure, also if it is noticed by a new leader, or if it is about to
// take over the seat of the old one.
func TestSpareOfPlainStoreIsLost(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.joinReplacing(5, 3)
	j.worlds(all)
	j.lose(all[2])
	j.lose(all[0])
	rest := []*Session{all[1], all[3], all[4]}
	j.restartWithout([]*Session{})
	for _, s := range rest {
		wantLost(t, j.ended(s), "the agent of rank 0 (pid 1000 on node0)")
	}
	j.settle(rest[0], stopped(1))
	each(rest, func(_ int, s *Session) { j.leave(s) })
	j.lose(rest[1])
	all = []*Session{rest[2], rest[0]}
	j.nextOfAll(all)
	j.wantRanks(all, Replaced{Ranks: "0", Host: "node4", Lost: "node0"})
	j.wantDone(all)
}

// An agent was killed, and is started again before its lease has expired: on its host or on another
// one, while the others run or wait for it. The leader is such an agent too.
func TestStartedAgainBeforeTheLeaseExpires(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lost    int
		host    string
		waiting bool // in the second attempt
	}{
		"agent":                          {1, "node1", false},
		"agent, elsewhere":               {1, "node9", false},
		"leader":                         {0, "node0", false},
		"leader, elsewhere":              {0, "node9", false},
		"waiting agent":                  {1, "node1", true},
		"agent, elsewhere, others wait":  {1, "node9", true},
		"leader, elsewhere, others wait": {0, "node9", true},
		"leader, same host, others wait": {0, "node0", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := startPlain(t)
			all := j.joinReplacing(3, 0)
			j.worlds(all)
			var rest []*Session
			for i, s := range all {
				if i != test.lost {
					rest = append(rest, s)
				}
			}
			if test.waiting {
				j.failAttempt(all, "x", 0)
				j.nextOfAll(rest)
				t.Cleanup(func() { all[test.lost].close(ErrStoreLost, registration.Nothing) })
			}
			j.kill(all[test.lost].config.Self.ID)
			c := j.again(test.lost, 3)
			c.Self.Host, c.Self.Node = test.host, test.host
			delayed := make(chan time.Duration, 9)
			c.Delayed = func(_ error, atMost time.Duration) { delayed <- atMost }
			arrived := j.arrivesLate(c)
			if !test.waiting {
				j.restartWithout(rest)
			}
			a := <-arrived
			if a.err != nil {
				t.Fatal(a.err)
			}
			now := append([]*Session{}, rest[:test.lost]...)
			now = append(append(now, a.session), rest[test.lost:]...)
			j.wantRanks(now, Replaced{Ranks: fmt.Sprint(test.lost), Host: test.host, Lost: fmt.Sprint("node", test.lost)})
			if !test.waiting && len(delayed) == 0 {
				t.Error("it does not say that it waits")
			}
			j.finish(now, succeeded)
		})
	}
}

// An agent too many of a job whose lost agents can be replaced waits no longer than the lease of one
// that was killed may exist.
func TestReplaceableJobIsFull(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.joinReplacing(2, 0)
	j.worlds(all)
	began := time.Now()
	if a := <-j.arrivesLate(j.replacing(9, 2, 0)); a.err != ErrFull {
		t.Errorf("one agent too many: %v", a.err)
	}
	if took := time.Since(began); took > 2*presence.MinTimeout+2*time.Second {
		t.Errorf("refused after %v", took)
	}
	j.wantDone(all)
}
