package wrap

import (
	"context"
	"sync"
	"testing"
	"time"
)

// ample is a grace that no worker needs in full.
const ample = 10 * time.Second

// running is a Run in the background.
type running struct {
	t       *testing.T
	cancel  context.CancelCauseFunc
	kill    func() // closes Tree.Kill
	done    chan struct{}
	results []Result
	err     error
}

// begin starts Run; at the end of the test it is killed if it still goes on.
func begin(t *testing.T, tree Tree) *running {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	kill := make(chan struct{})
	tree.Kill = kill
	r := &running{
		t: t, cancel: cancel, kill: sync.OnceFunc(func() { close(kill) }), done: make(chan struct{}),
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
		r.t.Fatal("Run does not return")
	}
	survivors(r.t)
	return r.results, r.err
}

// one returns the result of a tree of one worker that ended without error.
func (r *running) one() Result {
	r.t.Helper()
	results, err := r.wait()
	if err != nil || len(results) != 1 {
		r.t.Fatalf("%+v, %v", results, err)
	}
	return results[0]
}
