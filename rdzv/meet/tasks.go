package meet

import (
	"context"
	"sync"
	"time"
)

// tasks runs the background goroutines of a store. The zero value runs none.
type tasks struct {
	mu    sync.Mutex
	ctx   context.Context
	stop  context.CancelFunc
	group sync.WaitGroup
}

// run calls f in a goroutine. The context of f ends when end is called.
func (t *tasks) run(f func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop == nil {
		t.ctx, t.stop = context.WithCancel(context.Background())
	}
	ctx := t.ctx
	t.group.Go(func() { f(ctx) })
}

// end stops all tasks and waits for them.
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

// pause waits for d, and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
