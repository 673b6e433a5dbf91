package rdzv

import (
	"testing"
	"time"
)

// exportingAgents joins agents that wait for each other before they start workers.
func (p *plain) exportingAgents(joined, n int) []*Session {
	p.t.Helper()
	sessions := make([]*Session, joined)
	for i := range sessions {
		c := p.config(i, n)
		c.Self.Exports = &Exports{Sealed: []byte("of " + c.Self.Host), Confirm: true}
		sessions[i] = p.joinWith(p.client(c.Self.ID), c)
	}
	return sessions
}

// While the leader is disconnected an agent is lost, and the store compacts that.
func TestCompactedLoss(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	var all []*Session
	joined := make(chan bool, 1)
	for i := range 2 {
		c := p.config(i, 3)
		c.Lead.NextWaiting = func(last time.Duration) time.Duration { return last + time.Millisecond }
		c.Lead.Waiting = func(r Roster, _ time.Duration) {
			if r.Joined == 2 {
				select {
				case joined <- true:
				default:
				}
			}
		}
		all = append(all, p.joinWith(p.client(c.Self.ID), c))
	}
	<-joined
	p.kill(all[0].config.Self.ID)
	p.lose(all[1])
	p.compact()
	p.revive(all[0].config.Self.ID)
	wantLost(t, p.ended(all[0]), "an agent (pid 1001 on node1)")
	p.finish(all[:1], stopped)
	p.wantNothingLeft()
}

// While the leader is disconnected other agents are ready, and the store compacts that.
func TestCompactedReady(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.exportingAgents(3, 3)
	for i, w := range p.worlds(all) {
		if w.Exports == nil || string(w.Exports.Sealed) != "of node0" {
			t.Errorf("agent %d got %+v, want what node0 exports", i, w.Exports)
		}
	}
	p.kill(all[0].config.Self.ID)
	each(all, func(i int, s *Session) {
		if i == 0 {
			p.await(s.keys.ready("agent-1"), true)
			p.await(s.keys.ready("agent-2"), true)
			p.compact()
			p.revive(s.config.Self.ID)
		}
		if err := s.Ready(p.ctx, nil, Facts{}); err != nil {
			t.Errorf("agent %d: %v", i, err)
		}
	})
	for i, sum := range p.finish(all, succeeded) {
		if sum.Verdict == nil || sum.Verdict.Kind != Done || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	p.wantNothingLeft()
}

// The leader is lost while agents wait until all are ready.
func TestLeaderIsLostBeforeReady(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.exportingAgents(3, 3)
	p.worlds(all)
	each(all, func(i int, s *Session) {
		if i == 0 {
			p.await(s.keys.ready("agent-1"), true)
			p.await(s.keys.ready("agent-2"), true)
			p.lose(s)
			return
		}
		wantLost(t, s.Ready(p.ctx, nil, Facts{}), "the agent of rank 0 (pid 1000 on node0)")
	})
	p.finish(all[1:], stopped)
	p.wantNothingLeft()
}
