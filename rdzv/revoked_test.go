package rdzv

import (
	"errors"
	"slices"
	"testing"
	"time"

	"rdzv/rdzv/restart"
)

// revoke makes the store revoke the leases of agents, as a leader of an etcd cluster does that
// continues after it was frozen. It returns when they have registered again.
func (j *job) revoke(all ...*Session) {
	j.t.Helper()
	agents := string(all[0].registration.Run.Keys.Agents())
	before := j.createRevisions(agents)
	for _, s := range all {
		if _, err := j.admin.Revoke(j.ctx, s.registration.Lease()); err != nil {
			j.t.Fatal(err)
		}
	}
	again := func(revision int64) bool { return !slices.Contains(before, revision) }
	for {
		n := 0
		for _, revision := range j.createRevisions(agents) {
			if again(revision) {
				n++
			}
		}
		if n == len(all) {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-j.ctx.Done():
			j.t.Fatalf("%d of %d agents have registered again", n, len(all))
		}
	}
}

// Agents whose leases the store has revoked register again, and the job goes on: it is restarted, and
// ends, as if nothing had happened.
func TestLeasesAreRevoked(t *testing.T) {
	t.Parallel()
	for name, which := range map[string][]int{
		"of all": {0, 1, 2}, "of the leader": {0}, "of another agent": {1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := startPlain(t)
			all := make([]*Session, 3)
			for i := range all {
				c := j.leased(i, 3)
				c.Lead.Restarts = restart.Policy{Max: 9}
				c.Lead.ReturnTime = 3 * time.Second // other tests use the processors
				all[i] = j.joinWith(j.client(c.Self.ID), c)
			}
			revoke := func() {
				some := make([]*Session, len(which))
				for i, at := range which {
					some[i] = all[at]
				}
				j.revoke(some...)
			}
			j.worlds(all)
			revoke()
			j.failAttempt(all, "x", 0)
			revoke()
			j.nextOfAll(all)
			for i, w := range j.worlds(all) {
				if w.Attempt != 1 || w.Seat.First() != i {
					t.Errorf("agent %d: %+v", i, w)
				}
			}
			revoke()
			members, _, err := all[0].Ask(j.ctx, Question{})
			if err != nil || len(members) != 3 {
				t.Errorf("members: %v, %v", members, err)
			}
			for i, sum := range j.finish(all, succeeded) {
				if sum.Verdict == nil || sum.Verdict.Kind != Done || !sum.Settled {
					t.Errorf("agent %d: %+v", i, sum)
				}
			}
			j.wantNothingLeft()
		})
	}
}

// An agent that the others consider lost does not come back.
func TestLostAgentDoesNotRegisterAgain(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.leasedAgents(2, 2)
	j.worlds(all)
	j.expire(all[1])
	wantLost(t, j.ended(all[0]), "the agent of rank 1 (pid 1001 on node1)")
	select {
	case <-all[1].registration.Store.Context().Done():
	case <-j.ctx.Done():
		t.Fatal("the agent believes that it is in the store")
	}
	if err := j.ended(all[1]); !errors.Is(err, ErrStoreLost) && !isLost(err) {
		t.Errorf("the lost agent: %v", err)
	}
	j.finish(all[:1], stopped)
}
