package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"rdzv/rdzv"
)

// tally counts the workers of this agent that have ended.
type tally struct {
	mu    sync.Mutex
	ended []rdzv.Worker
	timer *time.Timer    // nil until some but not all have ended
	wg    sync.WaitGroup // of what is yet to be told
}

// progressDelay is how long after a worker's end the job hears of it if others of
// the agent still run. Workers that end together are told of together, when the
// last has ended.
const progressDelay = time.Second

// count takes in the end of a worker. The last one settles.
func (g *agent) count(w rdzv.Worker) {
	t := &g.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = append(t.ended, w)
	switch {
	case len(t.ended) == g.slots:
		g.settle(t.ended)
	case t.timer == nil:
		t.timer = time.AfterFunc(progressDelay, func() { t.wg.Go(g.progress) })
	default:
		t.timer.Reset(progressDelay)
	}
}

// progress tells the job which workers have ended while others still run, so that
// those can be named as stragglers.
func (g *agent) progress() {
	g.tally.mu.Lock()
	ended := slices.Clone(g.tally.ended)
	g.tally.mu.Unlock()
	if len(ended) < g.slots {
		g.tell(func(ctx context.Context) error { return g.session.Progress(ctx, ended) })
	}
}

// close waits until nothing more is told.
func (t *tally) close() {
	t.mu.Lock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.wg.Wait()
}
