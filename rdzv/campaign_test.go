package rdzv

import (
	"errors"
	"slices"
	"testing"

	"rdzv/rdzv/restart"
)

// The leader is the agent that joined first.
func TestLeaderIsLost(t *testing.T) {
	t.Parallel()
	lost := func(t *testing.T, p *plain, rest []*Session, who string) {
		for _, s := range rest {
			wantLost(t, p.ended(s), who)
		}
	}
	for name, test := range map[string]struct {
		joined int
		lose   func(t *testing.T, p *plain, sessions []*Session)
		want   Kind
	}{
		"before the world": {2, func(t *testing.T, p *plain, all []*Session) {
			p.lose(all[0])
			lost(t, p, all[1:], "an agent (pid 1000 on node0)")
		}, Lost},
		"between the seats and the world": {2, func(t *testing.T, p *plain, all []*Session) {
			for i, s := range all {
				if err := s.put(p.ctx, s.keys.seat(s.config.Self.ID),
					encode(seatValue{Seat: Seat{Rank: i, Slots: 1}}), s.leases.job); err != nil {
					t.Fatal(err)
				}
			}
			p.lose(all[0])
			lost(t, p, all[1:], "an agent (pid 1000 on node0)")
		}, Lost},
		"while workers run": {3, func(t *testing.T, p *plain, all []*Session) {
			p.worlds(all)
			p.lose(all[0])
			lost(t, p, all[1:], "the agent of rank 0 (pid 1000 on node0)")
		}, Lost},
		"with its successor": {3, func(t *testing.T, p *plain, all []*Session) {
			p.worlds(all)
			p.kill(all[1].config.Self.ID)
			p.lose(all[0])
			p.lose(all[1])
			if v, ok := p.ended(all[2]).(*Verdict); !ok || v.Kind != Lost {
				t.Errorf("%+v", v)
			}
		}, Lost},
		"after the verdict": {3, func(t *testing.T, p *plain, all []*Session) {
			p.worlds(all)
			if err := all[1].End(p.ctx, 15, false); err != nil {
				t.Fatal(err)
			}
			p.ended(all[2])
			p.lose(all[0])
		}, Ended},
		"after it has settled": {3, func(t *testing.T, p *plain, all []*Session) {
			p.worlds(all)
			p.settle(all[0], succeeded(0))
			p.lose(all[0])
		}, Done},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPlain(t)
			all := p.leasedAgents(test.joined, 3)
			test.lose(t, p, all)
			rest := slices.DeleteFunc(all, func(s *Session) bool { return p.dead[s.config.Self.ID] })
			worker := succeeded
			if test.want != Done {
				worker = stopped
			}
			ranks := func(i int) Worker { return worker(i + test.joined - len(rest)) }
			for i, sum := range p.finish(rest, ranks) {
				if v := sum.Verdict; v == nil || v.Kind != test.want || !sum.Settled {
					t.Errorf("agent %d: %+v, verdict %+v", i, sum, v)
				}
			}
			p.wantNothingLeft()
		})
	}
}

func TestDeposedLeaderCannotWrite(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.leasedAgents(2, 3)
	s := all[0]
	c, _, err := s.registration.(*leased).awaitTurn(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	l := newLeader(p.admin, s.keys, LeaderConfig{Job: "test", Agents: 3})
	l.candidate, l.lease = c, s.leases.job
	if err := l.commit(p.ctx, nil, l.put(s.keys.look(), encode(look{}))); err != nil {
		t.Fatalf("before: %v", err)
	}
	p.lose(s)
	for what, write := range map[string]func() error{
		"verdict": func() error { return l.writeVerdict(p.ctx, verdictOf(Done)) },
		"start":   func() error { return l.writeStart(p.ctx) },
		"world":   func() error { _, err := l.publish(p.ctx, World{Job: "test"}); return err },
		"settled": func() error {
			l.verdict = new(Verdict)
			defer func() { l.verdict = nil }()
			return l.writeSettled(p.ctx, nil, restart.Decision{})
		},
	} {
		if err := write(); !errors.Is(err, errDeposed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantLost(t, p.ended(all[1]), "an agent (pid 1000 on node0)")
	p.finish(all[1:], stopped)
}
