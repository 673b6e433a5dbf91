package agent_test

import (
	"context"
	"errors"
	"testing"

	"rdzv/rdzv/agent"
)

// Run can be called again after it has returned.
func TestRunTwice(t *testing.T) {
	for i := range 2 {
		r := &recorder{t: t}
		result, err := r.run(t.Context(), config(t, succeed, 2))
		checkCode(t, result, err, 0)
		if len(r.events) == 0 {
			t.Errorf("call %d of Run: no events", i+1)
		}
	}
}

// A second Run at the same time is refused: both would handle the signals of the process.
func TestConcurrentRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &recorder{t: t}
	r.onEvent = started(1, func() {
		defer cancel()
		if _, err := agent.Run(t.Context(), config(t, succeed, 1)); !errors.Is(err,
			agent.ErrRunning) {
			t.Errorf("second Run: %v, want %v", err, agent.ErrRunning)
		}
	})
	result, err := r.run(ctx, config(t, runsOn, 1))
	checkCode(t, result, err, 143)
}
