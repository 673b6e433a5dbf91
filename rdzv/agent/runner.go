package agent

import (
	"context"
	"sync"

	"rdzv/wrap"
)

// ownRunner is the runner of this process, which runs the workers of all attempts.
type ownRunner struct {
	mu  sync.Mutex
	now *wrap.Runner // nil if there is none
}

// start starts it. If that fails run tries it again.
func (r *ownRunner) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, _ = wrap.StartRunner()
}

// run is wrap.Run. It starts another runner if the former one has died.
func (r *ownRunner) run(ctx context.Context, t wrap.Tree) ([]wrap.Result, error) {
	now, err := r.get()
	if err != nil {
		return nil, err
	}
	return now.Run(ctx, t)
}

func (r *ownRunner) get() (*wrap.Runner, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now != nil {
		select {
		case <-r.now.Lost():
			r.now.Close()
		default:
			return r.now, nil
		}
	}
	var err error
	r.now, err = wrap.StartRunner()
	return r.now, err
}

// remaining are the processes that run below it.
func (r *ownRunner) remaining() []wrap.Process {
	r.mu.Lock()
	now := r.now
	r.mu.Unlock()
	if now == nil {
		return nil
	}
	return now.Remaining()
}

func (r *ownRunner) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now != nil {
		r.now.Close()
		r.now = nil
	}
}
