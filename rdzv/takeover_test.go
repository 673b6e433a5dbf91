package rdzv

import (
	"testing"
	"time"
)

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
