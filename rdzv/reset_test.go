package rdzv

import (
	"testing"
	"time"
)

// A job survives a firewall that resets connections. On a busy machine, reconnecting may take
// longer than the 50 ms that are allowed; then the agent is correctly lost, and the test tries
// again.
func TestReconnectAfterReset(t *testing.T) {
	for range 10 {
		if survivesResets(t, 3) {
			return
		}
	}
	t.Error("no agent survived the resets of its connection")
}

func survivesResets(t *testing.T, resets int) bool {
	j := start(t, LeaderConfig{Tasks: 3})
	sessions := j.agents(3)
	j.worlds(sessions)
	for i := range resets {
		j.reset("agent-1")
		if !j.reconnects(sessions[1], i+2) {
			return false
		}
		if err := sessions[1].Progress(j.ctx, nil); err != nil { // a call during the reset
			return false
		}
	}
	if err := sessions[2].Fail(j.ctx, Worker{Rank: 2, Code: 3}); err != nil {
		t.Fatal(err)
	}
	if v, ok := j.ended(sessions[1]).(*Verdict); !ok || v.Kind != Failed {
		return false
	}
	for i, sum := range j.finish(sessions, stopped) {
		if sum.Verdict.Kind != Failed || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	return true
}

// reconnects waits until an agent has made its nth connection, or its session ends.
func (j *job) reconnects(s *Session, n int) bool {
	j.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		j.mu.Lock()
		made := len(j.conns[s.config.Self.ID])
		j.mu.Unlock()
		if made >= n {
			return true
		}
		select {
		case <-tick.C:
		case <-s.Context().Done():
			return false
		case <-j.ctx.Done():
			j.t.Fatalf("%s has made %d connections, not %d", s.config.Self.ID, made, n)
		}
	}
}
