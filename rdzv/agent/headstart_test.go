package agent_test

import (
	"context"
	"testing"
	"time"

	"rdzv/rdzv/agent"
)

// fails exits with 3.
var fails = role("fails", func() int { return 3 })

// While the other ranks wait for the end of rank 0's head start, rank 0's failure ends the job at
// once, and so does the end of the context. The others are not started.
func TestEndInHeadStart(t *testing.T) {
	for _, c := range []struct {
		role string
		code int
	}{{fails, 3}, {runsOn, 143}} {
		t.Run(c.role, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := &recorder{t: t}
			if c.role == runsOn {
				r.onEvent = started(1, cancel)
			}
			config := config(t, c.role, 3)
			config.Events = r.event
			local, err := agent.Plan(config)
			if err != nil {
				t.Fatal(err)
			}
			local.HeadStart = time.Hour
			begin := time.Now()
			result, err := local.Run(ctx)
			checkCode(t, result, err, c.code)
			if took := time.Since(begin); took > deadline {
				t.Errorf("it took %v", took)
			}
			for _, e := range r.events {
				if e, is := e.(agent.WorkerStarted); is && e.Rank != 0 {
					t.Errorf("rank %d has started", e.Rank)
				}
			}
		})
	}
}
