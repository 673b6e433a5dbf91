package rdzv

import (
	"errors"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/restart"
)

// restartable joins n agents of a job with restarts.
func (j *job) restartable(n, restarts int) []*Session {
	j.t.Helper()
	sessions := make([]*Session, n)
	for i := range sessions {
		c := j.leased(i, n)
		c.Lead.Restarts = restart.Policy{Max: restarts}
		sessions[i] = j.joinWith(j.client(c.Self.ID), c)
	}
	return sessions
}

// createRevisions are those of all keys with a prefix.
func (j *job) createRevisions(prefix string) (revisions []int64) {
	j.t.Helper()
	found, err := j.admin.Get(j.ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		j.t.Fatal(err)
	}
	for _, kv := range found.Kvs {
		revisions = append(revisions, kv.CreateRevision)
	}
	return revisions
}

// lossPoints are when the leader of a job can be lost that has failed once.
var lossPoints = map[string]func(j *job, all []*Session){
	"when all have settled": func(j *job, all []*Session) {},
	"before the others join": func(j *job, all []*Session) {
		all[0] = j.next(0, all[0])
	},
	"when the others have joined": func(j *job, all []*Session) {
		j.nextOfAll(all[1:])
	},
	"during the delay": func(j *job, all []*Session) {
		j.nextOfAll(all)
		j.worlds(all)
		j.failAttempt(all, "y", 0)
		j.nextOfAll(all)
	},
	"between the seats and the world": func(j *job, all []*Session) {
		j.nextOfAll(all[1:])
		for i, s := range all[1:] {
			if err := s.life.store.Put(j.ctx, s.keys.Seats().Of(s.config.Self.ID),
				record.Encode(record.SeatValue{Seat: oneRank(2 - i)}), s.registration.Run.JobLease); err != nil {
				j.t.Fatal(err)
			}
		}
	},
	"when workers run": func(j *job, all []*Session) {
		j.nextOfAll(all)
		j.worlds(all)
	},
}

// nextOfAll joins all agents to the next attempt that have left theirs.
func (j *job) nextOfAll(all []*Session) {
	j.t.Helper()
	for i, s := range all {
		if s.leave.summary.Restart == nil {
			continue
		}
		all[i] = j.nextAs(s, s.config.Self)
	}
}

// The leader is frozen until its lease has expired, and continues. Whenever that happens, the job
// ends on all agents, and the old leader writes nothing.
func TestLeaderIsLostBetweenAttempts(t *testing.T) {
	t.Parallel()
	for name, until := range lossPoints {
		t.Run(name, func(t *testing.T) {
			j := startPlain(t)
			all := j.restartable(3, 9)
			j.worlds(all)
			j.failAttempt(all, "x", 0)
			until(j, all)
			j.expire(all[0])
			j.nextOfAll(all)
			for _, s := range all[1:] {
				wantLost(t, j.ended(s), "the agent of rank 0 (pid 1000 on node0)")
			}
			if err := j.ended(all[0]); !errors.Is(err, ErrStoreLost) && !isLost(err) {
				t.Errorf("the old leader: %v", err)
			}
			for i, sum := range j.finish(all[1:], stopped) {
				if sum.Verdict == nil || sum.Verdict.Kind != Lost || !sum.Settled || sum.Restart != nil {
					t.Errorf("agent %d: %+v", i+1, sum)
				}
			}
			_, _ = all[0].Leave(j.ctx) // whatever it knows
			j.wantNothingLeft()
		})
	}
}

func isLost(err error) bool {
	v, ok := errors.AsType[*Verdict](err)
	return ok && v.Kind == Lost
}

// The leader is lost after a failure, before all have settled: there is no other attempt.
func TestLeaderIsLostBeforeTheDecision(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.restartable(3, 9)
	j.worlds(all)
	if err := all[1].Fail(j.ctx, Worker{Rank: 1, Code: 7}); err != nil {
		t.Fatal(err)
	}
	j.ended(all[2])
	j.lose(all[0])
	failed := func(i int) Worker { return []Worker{{Rank: 1, Code: 7}, stopped(2)}[i] }
	for i, sum := range j.finish(all[1:], failed) {
		if sum.Verdict.Kind != Failed || sum.Restart != nil || sum.NoRestart != restart.Lost {
			t.Errorf("agent %d: %+v", i+1, sum)
		}
	}
	j.wantNothingLeft()
}

// restarted2 are n agents in the second attempt of a job, whose first one has failed early with "x".
func (j *job) restarted2(n int) []*Session {
	j.t.Helper()
	all := j.restartable(n, 9)
	j.worlds(all)
	all = j.restarted(all, "x")
	j.worlds(all)
	return all
}

// What a new leader knows of the attempts before is what the old one knew.
func TestNewLeaderOfALaterAttempt(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.restartable(3, 9)
	j.worlds(all)
	check := func(state string, attempt int) *Leader {
		l := j.leaderOf(all[0])
		l.cancel()
		all := l.state.Members()
		if l.state.Attempt() != attempt || len(all) != 3 {
			t.Errorf("%s: attempt %d, members %+v", state, l.state.Attempt(), all)
		}
		for i, m := range all {
			if m.ID != member(i).ID || m.Host == "" {
				t.Errorf("%s: member %d: %+v", state, i, m)
			}
		}
		return l
	}
	check("first attempt", 0)
	all = j.restarted(all, "x")
	j.worlds(all)
	check("second attempt", 1)
	j.failAttempt(all, "y", 0)
	check("announced", 2)
	for i := range all {
		all[i] = j.next(i, all[i])
	}
	j.worlds(all)
	j.finish(all, succeeded)
	j.wantNothingLeft()
}

// The store ends the watch of the leader in the second attempt. It begins again, and counts the
// failure before.
func TestPolicyCountsAcrossWatches(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.restarted2(3)
	j.kill(all[0].config.Self.ID)
	if err := all[2].Fail(j.ctx, Worker{Rank: 2, Code: 1, Text: "x"}); err != nil {
		t.Fatal(err)
	}
	j.ended(all[2])
	j.compact()
	j.revive(all[0].config.Self.ID)
	workers := []Worker{stopped(0), stopped(1), {Rank: 2, Code: 1, Text: "x"}}
	for i, sum := range j.finish(all, func(i int) Worker { return workers[i] }) {
		if sum.Restart != nil || sum.NoRestart != restart.Repeated || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	j.wantNothingLeft()
}

// An agent too many is refused in every attempt, and between them. It begins a new run only when
// there is no other attempt.
func TestPlainStoreIsFullInLaterAttempts(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	late := func() error {
		_, err := Join(j.ctx, j.client("agent-9"), j.leased(9, 2))
		return err
	}
	wantFull := func(when string) {
		t.Helper()
		if err := late(); err != ErrFull {
			t.Errorf("%s: %v", when, err)
		}
	}
	all := j.restartable(2, 1)
	j.worlds(all)
	if err := all[0].Fail(j.ctx, Worker{Code: 1}); err != nil {
		t.Fatal(err)
	}
	j.ended(all[1])
	wantFull("before the decision")
	j.failAttempt(all, "", 0)
	wantFull("after the decision")
	for i := range all {
		all[i] = j.next(i, all[i])
	}
	wantFull("in the second attempt")
	j.worlds(all)
	if err := all[0].Fail(j.ctx, Worker{Code: 1}); err != nil {
		t.Fatal(err)
	}
	j.ended(all[1])
	next := []*Session{j.joinLeased(2, 2), j.joinLeased(3, 2)}
	j.worlds(next)
	j.finish(all, func(i int) Worker { return Worker{Rank: i, Code: 1} })
	for i, sum := range j.finish(next, succeeded) {
		if sum.Verdict.Kind != Done {
			t.Errorf("agent %d of the next job: %v", i, fmt.Sprint(sum.Verdict))
		}
	}
	j.wantNothingLeft()
}
