package rdzv

import (
	"errors"
	"slices"
	"testing"

	rules "rdzv/rdzv/internal/job"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/internal/registration"
)

// The leader is the agent that joined first.
func TestLeaderIsLost(t *testing.T) {
	t.Parallel()
	lost := func(t *testing.T, j *job, rest []*Session, who string) {
		for _, s := range rest {
			wantLost(t, j.ended(s), who)
		}
	}
	for name, test := range map[string]struct {
		joined int
		lose   func(t *testing.T, j *job, sessions []*Session)
		want   Kind
	}{
		"before the world": {2, func(t *testing.T, j *job, all []*Session) {
			j.lose(all[0])
			lost(t, j, all[1:], "an agent (pid 1000 on node0)")
		}, Lost},
		"between the seats and the world": {2, func(t *testing.T, j *job, all []*Session) {
			for i, s := range all {
				if err := s.life.store.Put(j.ctx, s.keys.Seats().Of(s.config.Self.ID),
					record.Encode(record.SeatValue{Seat: oneRank(i)}), s.registration.Run.JobLease); err != nil {
					t.Fatal(err)
				}
			}
			j.lose(all[0])
			lost(t, j, all[1:], "an agent (pid 1000 on node0)")
		}, Lost},
		"while workers run": {3, func(t *testing.T, j *job, all []*Session) {
			j.worlds(all)
			j.lose(all[0])
			lost(t, j, all[1:], "the agent of rank 0 (pid 1000 on node0)")
		}, Lost},
		"with its successor": {3, func(t *testing.T, j *job, all []*Session) {
			j.worlds(all)
			j.kill(all[1].config.Self.ID)
			j.lose(all[0])
			j.lose(all[1])
			if v, ok := j.ended(all[2]).(*Verdict); !ok || v.Kind != Lost {
				t.Errorf("%+v", v)
			}
		}, Lost},
		"after the verdict": {3, func(t *testing.T, j *job, all []*Session) {
			j.worlds(all)
			if err := all[1].End(j.ctx, 15, false); err != nil {
				t.Fatal(err)
			}
			j.ended(all[2])
			j.lose(all[0])
		}, Ended},
		"after it has settled": {3, func(t *testing.T, j *job, all []*Session) {
			j.worlds(all)
			j.settle(all[0], succeeded(0))
			j.lose(all[0])
		}, Done},
	} {
		t.Run(name, func(t *testing.T) {
			j := startPlain(t)
			all := j.leasedAgents(test.joined, 3)
			test.lose(t, j, all)
			rest := slices.DeleteFunc(all, func(s *Session) bool { return j.dead[s.config.Self.ID] })
			worker := succeeded
			if test.want != Done {
				worker = stopped
			}
			ranks := func(i int) Worker { return worker(i + test.joined - len(rest)) }
			for i, sum := range j.finish(rest, ranks) {
				if v := sum.Verdict; v == nil || v.Kind != test.want || !sum.Settled {
					t.Errorf("agent %d: %+v, verdict %+v", i, sum, v)
				}
			}
			j.wantNothingLeft()
		})
	}
}

func TestDeposedLeaderCannotWrite(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.leasedAgents(2, 3)
	s := all[0]
	l := j.leaderOf(s)
	l.cancel()
	l.client = j.admin
	put := rules.Write{Ops: []rules.Op{{Key: "0/signal/release", Value: record.HeadStartOver{}}}}
	if err := l.write(j.ctx, put); err != nil {
		t.Fatalf("before: %v", err)
	}
	j.lose(s)
	for what, write := range map[string]rules.Write{
		"put": put, "delete": {Ops: []rules.Op{{Key: "0/seat/", End: "0/seat0"}}},
		"condition": {If: []rules.Cond{{Key: "0/signal/verdict"}}, Ops: put.Ops},
	} {
		if err := l.write(j.ctx, write); !errors.Is(err, registration.ErrDeposed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantLost(t, j.ended(all[1]), "an agent (pid 1000 on node0)")
	j.finish(all[1:], stopped)
}
