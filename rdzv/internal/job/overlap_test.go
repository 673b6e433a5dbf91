package job

import (
	"testing"
	"time"
)

// A cluster that revokes the leases of all agents may do so when one of them is disconnected, which
// therefore takes itself for lost only after its lease would have ended.
func TestAwaitWorkers(t *testing.T) {
	const ttl, grace, ago = time.Minute, 2 * time.Second, time.Second
	for name, c := range map[string]struct {
		why     Loss
		revoked bool
		want    time.Duration
	}{
		"killed":  {Loss{}, false, lostMargin},
		"silent":  {Loss{Silent: true}, false, grace + lostMargin},
		"ended":   {Loss{Silent: true, Ago: ago}, false, grace + lostMargin - ago},
		"revoked": {Loss{Silent: true, Ago: ago}, true, ttl + grace + lostMargin - ago},
	} {
		s := newState(base, Config{
			Tasks: 2, LostGrace: grace, LeaseTTL: ttl, Revoked: func() bool { return c.revoked },
		})
		s.attempt.members.add(&member{Member: joinedAgent(0), here: true})
		s.attempt.phase.complete = true
		s.lose(&turn{now: base}, joinedAgent(0).ID, c.why)
		if wait := s.overlap.clearAt.Sub(base); wait != c.want {
			t.Errorf("%s: the next workers start after %v, want %v", name, wait, c.want)
		}
	}
}
