package job

import (
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
)

// How long the next workers wait for the processes of a lost agent depends on what is proved.
func TestAwaitWorkers(t *testing.T) {
	const ttl, grace, ago = time.Minute, 2 * time.Second, time.Second
	for name, c := range map[string]struct {
		why  record.Loss
		want time.Duration
	}{
		"nothing runs":         {record.Loss{Ended: true}, lostMargin},
		"silent":               {record.Loss{After: ttl}, grace + lostMargin},
		"reset":                {record.Loss{}, ttl + grace + lostMargin},
		"the end of its lease": {record.Loss{Ago: ago}, ttl + grace + lostMargin - ago},
	} {
		s := newState(base, Config{
			Tasks: 2, LostGrace: grace, PeerTimeout: ttl,
		}, Store{})
		s.attempt.members.add(&member{Member: joinedAgent(0), here: true})
		s.attempt.phase.complete = true
		s.lose(&turn{now: base}, joinedAgent(0).ID, c.why)
		if wait := s.overlap.clearAt.Sub(base); wait != c.want {
			t.Errorf("%s: the next workers start after %v, want %v", name, wait, c.want)
		}
	}
}
