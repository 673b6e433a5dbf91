package wrap

import (
	"context"
	"sync"
	"testing"
	"time"
)

// longGrace is a grace period that no worker needs in full.
const longGrace = 10 * time.Second

// running is a call of Run in the background.
type running struct {
	t       *testing.T
	cancel  context.CancelCauseFunc
	kill    func() // closes Tree.Kill
	done    chan struct{}
	results []Result
	err     error
}

// begin calls Run in the background. If Run has not returned at the end of the test, its tree is
// killed.
func begin(t *testing.T, tree Tree) *running {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	kill := make(chan struct{})
	tree.Kill = kill
	r := &running{
		t: t, cancel: cancel, done: make(chan struct{}),
		kill: sync.OnceFunc(func() { close(kill) }),
	}
	go func() {
		defer close(r.done)
		r.results, r.err = Run(ctx, tree)
	}()
	t.Cleanup(func() { r.kill(); <-r.done; cancel(nil) })
	return r
}

// wait returns what Run returned, within 20 s.
func (r *running) wait() ([]Result, error) {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(20 * time.Second):
		r.t.Fatal("Run has not returned within 20 s")
	}
	checkNoneLeft(r.t)
	return r.results, r.err
}

// one returns the result of a tree of one worker that ended without error.
func (r *running) one() Result {
	r.t.Helper()
	results, err := r.wait()
	if err != nil || len(results) != 1 {
		r.t.Fatalf("Run = %+v, %v, want one result and no error", results, err)
	}
	return results[0]
}
