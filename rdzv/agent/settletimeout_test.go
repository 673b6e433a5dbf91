package agent

import (
	"testing"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/restart"
)

// In a job with restarts the leader waits until it has noticed that an agent is lost.
func TestSettleTimeout(t *testing.T) {
	const peer = 10 * time.Second
	for _, test := range []struct {
		grace    time.Duration
		restarts int
		want     time.Duration
	}{
		{time.Second, 0, 6 * time.Second},
		{time.Second, 1, 15 * time.Second},
		{time.Minute, 1, 65 * time.Second},
	} {
		config := Config{Grace: test.grace, PeerTimeout: peer, Rules: rdzv.Rules{Restarts: restart.Policy{Max: test.restarts}}}
		if got := config.settleTimeout(); got != test.want {
			t.Errorf("%v: settle timeout %v", test, got)
		}
	}
}
