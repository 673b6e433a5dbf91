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
	p := startPlain(t)
	all := p.leasedAgents(3, 3)
	p.worlds(all)
	p.kill(all[1].config.Self.ID)
	for _, i := range []int{0, 2} {
		wantLost(t, p.ended(all[i]), "the agent of rank 1 (pid 1001 on node1)")
	}
	if cause := p.ended(all[1]); !errors.Is(cause, ErrStoreLost) {
		t.Errorf("the agent that cannot reach the store: %v", cause)
	}
	verdict := all[0].keys.verdict()
	p.kill(all[0].config.Self.ID)
	p.kill(all[2].config.Self.ID)
	began := time.Now()
	p.await(verdict, false)
	p.await(all[0].keys.member(all[0].config.Self.ID), false)
	if took := time.Since(began); took > 3*presence.MinTimeout+2*time.Second {
		t.Errorf("the keys were removed after %v", took)
	}
	p.wantNothingLeft()
}

// The leader is lost in a store whose election timeout is so long that all leases have the same TTL.
// The job's lease is renewed when the leader's agent does it no more.
func TestLongTTLs(t *testing.T) {
	t.Parallel()
	p := startPlainWith(t, 6600*time.Millisecond)
	all := p.leasedAgents(3, 3)
	p.worlds(all)
	job, own := all[0].leases.job, all[0].leases.own
	left := func(id clientv3.LeaseID) int64 {
		answer, err := p.admin.TimeToLive(p.ctx, id)
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
		case <-p.ctx.Done():
			t.Skip("the leases were always renewed at the same time")
		}
	}
	p.kill(all[0].config.Self.ID)
	for _, s := range all[1:] {
		wantLost(t, p.ended(s), "the agent of rank 0 (pid 1000 on node0)")
	}
	for i, sum := range p.finish(all[1:], stopped) {
		if !sum.Settled {
			t.Errorf("agent %d: %+v", i+1, sum)
		}
	}
	_, _ = all[0].Leave(p.ctx)
	p.wantNothingLeft()
}

// The store goes away while workers run.
func TestPlainStoreLost(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.leasedAgents(2, 2)
	p.worlds(all)
	for _, s := range all {
		p.freeze(s.config.Self.ID)
	}
	for i, s := range all {
		if cause := p.ended(s); !errors.Is(cause, ErrStoreLost) {
			t.Errorf("agent %d: %v", i, fmt.Sprint(cause))
		}
	}
}

// The store compacts what an agent and the leader have missed while they were disconnected.
func TestCompactionWhileDisconnected(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.leasedAgents(3, 3)
	p.worlds(all)
	for _, i := range []int{0, 1} {
		p.kill(all[i].config.Self.ID)
	}
	if err := all[2].End(p.ctx, 15, true); err != nil {
		t.Fatal(err)
	}
	p.ended(all[2])
	p.compact()
	p.revive(all[0].config.Self.ID)
	p.revive(all[1].config.Self.ID)
	for i, s := range all {
		if v, ok := p.ended(s).(*Verdict); !ok || v.Kind != Ended {
			t.Errorf("agent %d: %v", i, context.Cause(s.Context()))
		}
	}
	for i, sum := range p.finish(all, stopped) {
		if !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	p.wantNothingLeft()
}

// compact removes the history.
func (p *plain) compact() {
	p.t.Helper()
	answer, err := p.admin.Put(p.ctx, "other", "")
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.admin.Compact(p.ctx, answer.Header.Revision); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.admin.Delete(p.ctx, "other"); err != nil {
		p.t.Fatal(err)
	}
}

// revive lets an agent connect again that was killed.
func (p *plain) revive(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead[id] = false
}
