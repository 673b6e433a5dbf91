package rdzv

import (
	"testing"
	"time"
)

// exportingAgents joins agents that wait for each other before they start workers.
func (j *job) exportingAgents(joined, n int) []*Session {
	j.t.Helper()
	sessions := make([]*Session, joined)
	for i := range sessions {
		c := j.leased(i, n)
		c.Self.Exports = &Exports{Sealed: []byte("of " + c.Self.Host), Confirm: true}
		sessions[i] = j.joinWith(j.client(c.Self.ID), c)
	}
	return sessions
}

// While the leader is disconnected an agent is lost, and the store compacts that.
func TestCompactedLoss(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	var all []*Session
	joined := make(chan bool, 1)
	for i := range 2 {
		c := j.leased(i, 3)
		c.Lead.NextWaiting = func(last time.Duration) time.Duration { return last + time.Millisecond }
		c.Lead.Notify = func(n Notice) {
			if r, is := n.(Waiting); is && r.Joined == 2 {
				select {
				case joined <- true:
				default:
				}
			}
		}
		all = append(all, j.joinWith(j.client(c.Self.ID), c))
	}
	<-joined
	j.kill(all[0].config.Self.ID)
	j.lose(all[1])
	j.compact()
	j.revive(all[0].config.Self.ID)
	wantLost(t, j.ended(all[0]), "an agent (pid 1001 on node1)")
	j.finish(all[:1], stopped)
	j.wantNothingLeft()
}

// While the leader is disconnected other agents are ready, and the store compacts that.
func TestCompactedReady(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.exportingAgents(3, 3)
	for i, w := range j.worlds(all) {
		if w.Exports == nil || string(w.Exports.Sealed) != "of node0" {
			t.Errorf("agent %d got %+v, want what node0 exports", i, w.Exports)
		}
	}
	j.kill(all[0].config.Self.ID)
	each(all, func(i int, s *Session) {
		if i == 0 {
			j.await(s.keys.Ready().Of("agent-1"), true)
			j.await(s.keys.Ready().Of("agent-2"), true)
			j.compact()
			j.revive(s.config.Self.ID)
		}
		if err := s.Ready(j.ctx, nil, Facts{}); err != nil {
			t.Errorf("agent %d: %v", i, err)
		}
	})
	for i, sum := range j.finish(all, succeeded) {
		if sum.Verdict == nil || sum.Verdict.Kind != Done || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	j.wantNothingLeft()
}

// The leader is lost while agents wait until all are ready.
func TestLeaderIsLostBeforeReady(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.exportingAgents(3, 3)
	j.worlds(all)
	each(all, func(i int, s *Session) {
		if i == 0 {
			j.await(s.keys.Ready().Of("agent-1"), true)
			j.await(s.keys.Ready().Of("agent-2"), true)
			j.lose(s)
			return
		}
		wantLost(t, s.Ready(j.ctx, nil, Facts{}), "the agent of rank 0 (pid 1000 on node0)")
	})
	j.finish(all[1:], stopped)
	j.wantNothingLeft()
}
