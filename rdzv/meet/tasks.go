package meet

import (
	"context"
	"sync"
	"time"
)

// The tasks of a store run in the background until it is let go of, or until they have nothing to
// do any more. The zero value has none.
type tasks struct {
	mu    sync.Mutex
	ctx   context.Context
	stop  context.CancelFunc
	group sync.WaitGroup
}

// run runs f until end.
func (t *tasks) run(f func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop == nil {
		t.ctx, t.stop = context.WithCancel(context.Background())
	}
	ctx := t.ctx
	t.group.Go(func() { f(ctx) })
}

// end ends all tasks, and waits for them.
func (t *tasks) end() {
	t.mu.Lock()
	stop := t.stop
	t.stop = nil
	t.mu.Unlock()
	if stop != nil {
		stop()
	}
	t.group.Wait()
}

// pause waits for d, and reports whether ctx lasted for so long.
func pause(ctx context.Context, d time.Duration) (lasts bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
