package rdzv

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/lease"
	"rdzv/rdzv/presence"
)

// An agent stops without a trace, and then all others do.
func TestLeasesExpire(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.leasedAgents(3, 3)
	j.worlds(all)
	j.kill(all[1].config.Self.ID)
	for _, i := range []int{0, 2} {
		wantLost(t, j.ended(all[i]), "the agent of rank 1 (pid 1001 on node1)")
	}
	if cause := j.ended(all[1]); !errors.Is(cause, ErrStoreLost) {
		t.Errorf("the agent that cannot reach the store: %v", cause)
	}
	verdict := all[0].keys.Verdict()
	j.kill(all[0].config.Self.ID)
	j.kill(all[2].config.Self.ID)
	began := time.Now()
	j.await(verdict, false)
	j.await(all[0].keys.Members().Of(all[0].config.Self.ID), false)
	if took := time.Since(began); took > 3*presence.MinTimeout+2*time.Second {
		t.Errorf("the keys were removed after %v", took)
	}
	j.wantNothingLeft()
}

// The leader is lost in a store whose election timeout is so long that all leases have the same TTL.
// The job's lease is renewed when the leader's agent does it no more.
func TestLongTTLs(t *testing.T) {
	t.Parallel()
	j := startEtcd(t, LeaderConfig{}, 6600*time.Millisecond)
	all := j.leasedAgents(3, 3)
	j.worlds(all)
	job, own := all[0].registration.Run.JobLease, all[0].registration.Lease()
	left := func(id clientv3.LeaseID) int64 {
		answer, err := j.admin.TimeToLive(j.ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if answer.GrantedTTL < 3*lease.Seconds(presence.MinTimeout) {
			t.Fatalf("the store grants a TTL of %d s", answer.GrantedTTL)
		}
		return answer.TTL
	}
	for left(job) >= left(own) { // until the job's would expire first
		select {
		case <-time.After(20 * time.Millisecond):
		case <-j.ctx.Done():
			t.Skip("the leases were always renewed at the same time")
		}
	}
	j.kill(all[0].config.Self.ID)
	for _, s := range all[1:] {
		wantLost(t, j.ended(s), "the agent of rank 0 (pid 1000 on node0)")
	}
	for i, sum := range j.finish(all[1:], stopped) {
		if !sum.Settled {
			t.Errorf("agent %d: %+v", i+1, sum)
		}
	}
	_, _ = all[0].Leave(j.ctx)
	j.wantNothingLeft()
}

// The store goes away while workers run.
func TestPlainStoreLost(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.leasedAgents(2, 2)
	j.worlds(all)
	for _, s := range all {
		j.freeze(s.config.Self.ID)
	}
	for i, s := range all {
		if cause := j.ended(s); !errors.Is(cause, ErrStoreLost) {
			t.Errorf("agent %d: %v", i, fmt.Sprint(cause))
		}
	}
}

// The store compacts what an agent and the leader have missed while they were disconnected.
func TestCompactionWhileDisconnected(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.leasedAgents(3, 3)
	j.worlds(all)
	for _, i := range []int{0, 1} {
		j.kill(all[i].config.Self.ID)
	}
	if err := all[2].End(j.ctx, 15, true); err != nil {
		t.Fatal(err)
	}
	j.ended(all[2])
	j.compact()
	j.revive(all[0].config.Self.ID)
	j.revive(all[1].config.Self.ID)
	for i, s := range all {
		if v, ok := j.ended(s).(*Verdict); !ok || v.Kind != Ended {
			t.Errorf("agent %d: %v", i, context.Cause(s.Context()))
		}
	}
	for i, sum := range j.finish(all, stopped) {
		if !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	j.wantNothingLeft()
}

// compact removes the history.
func (j *job) compact() {
	j.t.Helper()
	answer, err := j.admin.Put(j.ctx, "other", "")
	if err != nil {
		j.t.Fatal(err)
	}
	if _, err := j.admin.Compact(j.ctx, answer.Header.Revision); err != nil {
		j.t.Fatal(err)
	}
	if _, err := j.admin.Delete(j.ctx, "other"); err != nil {
		j.t.Fatal(err)
	}
}

// revive lets an agent connect again that was killed.
func (j *job) revive(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.dead[id] = false
}
