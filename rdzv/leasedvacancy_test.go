package rdzv

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"rdzv/rdzv/presence"
	"rdzv/rdzv/restart"
)

// replacing is agent i of a job that goes on without an agent: a spare or another agent takes its
// place.
func (p *plain) replacing(i, agents, spares int) Config {
	c := p.byHand(i, agents)
	c.Lead.Restarts, c.Lead.Spares = restart.Policy{Max: 9}, spares
	c.Lead.Replaceable = spares == 0
	return c
}

func (p *plain) joinReplacing(agents, spares int) []*Session {
	p.t.Helper()
	sessions := make([]*Session, agents)
	for i := range sessions {
		c := p.replacing(i, agents, spares)
		sessions[i] = p.joinWith(p.client(c.Self.ID), c)
	}
	return sessions
}

// arrivesLate joins an agent in the background.
func (p *plain) arrivesLate(c Config) <-chan arrival {
	arrived, client := make(chan arrival, 1), p.client(c.Self.ID)
	go func() {
		s, err := Join(p.ctx, client, c)
		arrived <- arrival{s, err}
	}()
	return arrived
}

// again is agent i started again, on the same host.
func (p *plain) again(i, agents int) Config {
	c := p.replacing(i, agents, 0)
	c.Self.ID += "-again"
	return c
}

// restartWithout takes the agents whose workers run to the next attempt, after the loss of another
// one.
func (p *plain) restartWithout(rest []*Session) {
	p.t.Helper()
	for _, s := range rest {
		if v, lost := p.ended(s).(*Verdict); !lost || v.Kind != Lost {
			p.t.Fatalf("%s was told %v", s.config.Self.ID, v)
		}
	}
	p.finish(rest, stopped)
	p.nextOfAll(rest)
}

// wantRanks checks which agent has which rank.
func (p *plain) wantRanks(all []*Session, replaced ...Replaced) {
	p.t.Helper()
	for i, w := range p.worlds(all) {
		if w.Seat.Rank != i || w.Size != len(all) || !reflect.DeepEqual(w.Replaced, replaced) {
			p.t.Errorf("%s: seat %+v of %+v", all[i].config.Self.ID, w.Seat, w)
		}
	}
}

func (p *plain) wantDone(all []*Session) {
	p.t.Helper()
	for i, sum := range p.finish(all, succeeded) {
		if sum.Verdict == nil || sum.Verdict.Kind != Done || !sum.Settled {
			p.t.Errorf("%s: %+v", all[i].config.Self.ID, sum)
		}
	}
	p.wantNothingLeft()
}

// The leader, whose node runs rank 0, is frozen until its lease has expired, and continues. Whenever
// that happens, a spare or another agent has its place in the attempt that follows.
func TestLeaderIsReplaced(t *testing.T) {
	t.Parallel()
	for name, until := range lossPoints {
		for by, spares := range map[string]int{"a spare": 1, "another agent": 0} {
			t.Run(name+" by "+by, func(t *testing.T) {
				p := startPlain(t)
				all := p.joinReplacing(3+spares, spares)
				p.worlds(all)
				p.failAttempt(all, "x", 0)
				until(p, all)
				running := all[1].haveWorldNow()
				p.expire(all[0])
				var replacement *Session
				rest := all[1:]
				arrived := make(<-chan arrival)
				if spares == 0 {
					c := p.replacing(9, 3, 0)
					arrived = p.arrivesLate(c)
				}
				if running {
					p.restartWithout(rest)
				}
				p.nextOfAll(rest)
				if spares > 0 {
					replacement, rest = rest[2], rest[:2]
				} else if a := <-arrived; a.err != nil {
					t.Fatal(a.err)
				} else {
					replacement = a.session
				}
				now := append([]*Session{replacement}, rest...)
				p.wantRanks(now, Replaced{"0", replacement.config.Self.Host, "node0"})
				if !all[1].Leads() || replacement.Leads() {
					t.Error("the next agent does not lead")
				}
				p.nextOfAll(all[:1])
				if err := p.ended(all[0]); !errors.Is(err, ErrStoreLost) && !isLost(err) {
					t.Errorf("the old leader: %v", err)
				}
				_, _ = all[0].Leave(p.ctx) // whatever it knows
				p.wantDone(now)
			})
		}
	}
}

// haveWorldNow tells whether the workers of this attempt run.
func (s *Session) haveWorldNow() bool { return s.world.Load() != nil && s.summary.Restart == nil }

// A failure is followed by the loss of the leader, before all have settled: a spare takes its place.
func TestLeaderIsReplacedBeforeTheDecision(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.joinReplacing(3, 1)
	p.worlds(all)
	if err := all[1].Fail(p.ctx, Worker{Rank: 1, Code: 7, Text: "x"}); err != nil {
		t.Fatal(err)
	}
	p.ended(all[2])
	p.lose(all[0])
	rest := all[1:]
	for i, sum := range p.finish(rest, func(i int) Worker { return Worker{Rank: 1, Code: 7} }) {
		if sum.Verdict.Kind != Failed || sum.Restart == nil {
			t.Fatalf("agent %d: %+v", i+1, sum)
		}
	}
	p.nextOfAll(rest)
	now := []*Session{all[2], all[1]}
	p.wantRanks(now, Replaced{"0", "node2", "node0"})
	p.wantDone(now)
}

// The leader and another agent are lost at once: two spares run their ranks, and one of them leads.
// The next loss ends the job.
func TestTwoSparesTakeOver(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.joinReplacing(4, 2)
	p.worlds(all)
	p.lose(all[0])
	p.lose(all[1])
	rest := all[2:]
	p.restartWithout(rest)
	p.wantRanks(rest, Replaced{"0", "node2", "node0"}, Replaced{"1", "node3", "node1"})
	if !rest[0].Leads() {
		t.Error("the first of the spares does not lead")
	}
	p.lose(rest[0])
	wantLost(t, p.ended(rest[1]), "the agent of rank 0 (pid 1002 on node2)")
	p.settle(rest[1], stopped(1))
	if sum := p.leave(rest[1]); sum.NoRestart != restart.Lost || sum.Restart != nil {
		t.Errorf("%+v", sum)
	}
	p.wantNothingLeft()
}

// The loss of a spare is no failure, also if it is noticed by a new leader, or if it is about to
// take over the seat of the old one.
func TestSpareOfPlainStoreIsLost(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.joinReplacing(5, 3)
	p.worlds(all)
	p.lose(all[2])
	p.lose(all[0])
	rest := []*Session{all[1], all[3], all[4]}
	p.restartWithout([]*Session{})
	for _, s := range rest {
		wantLost(t, p.ended(s), "the agent of rank 0 (pid 1000 on node0)")
	}
	p.settle(rest[0], stopped(1))
	each(rest, func(_ int, s *Session) { p.leave(s) })
	p.lose(rest[1])
	all = []*Session{rest[2], rest[0]}
	p.nextOfAll(all)
	p.wantRanks(all, Replaced{"0", "node4", "node0"})
	p.wantDone(all)
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
			p := startPlain(t)
			all := p.joinReplacing(3, 0)
			p.worlds(all)
			var rest []*Session
			for i, s := range all {
				if i != test.lost {
					rest = append(rest, s)
				}
			}
			if test.waiting {
				p.failAttempt(all, "x", 0)
				p.nextOfAll(rest)
				t.Cleanup(func() { all[test.lost].close(ErrStoreLost, false) })
			}
			p.kill(all[test.lost].config.Self.ID)
			c := p.again(test.lost, 3)
			c.Self.Host, c.Self.Node = test.host, test.host
			delayed := make(chan time.Duration, 9)
			c.Delayed = func(_ error, atMost time.Duration) { delayed <- atMost }
			arrived := p.arrivesLate(c)
			if !test.waiting {
				p.restartWithout(rest)
			}
			a := <-arrived
			if a.err != nil {
				t.Fatal(a.err)
			}
			now := append([]*Session{}, rest[:test.lost]...)
			now = append(append(now, a.session), rest[test.lost:]...)
			p.wantRanks(now, Replaced{fmt.Sprint(test.lost), test.host, fmt.Sprint("node", test.lost)})
			if !test.waiting && len(delayed) == 0 {
				t.Error("it does not say that it waits")
			}
			p.finish(now, succeeded)
		})
	}
}

// An agent too many of a job whose lost agents can be replaced waits no longer than the lease of one
// that was killed may exist.
func TestReplaceableJobIsFull(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.joinReplacing(2, 0)
	p.worlds(all)
	began := time.Now()
	if a := <-p.arrivesLate(p.replacing(9, 2, 0)); a.err != ErrFull {
		t.Errorf("one agent too many: %v", a.err)
	}
	if took := time.Since(began); took > 2*presence.MinTimeout+2*time.Second {
		t.Errorf("refused after %v", took)
	}
	p.wantDone(all)
}
