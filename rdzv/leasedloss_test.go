package rdzv

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

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
