package meet

import (
	"context"
	"slices"
	"sync"
)

// Meet returns when this agent hosts the store (host has returned without an error) or has an
// authenticated connection to it. If ctx ends before that, the error is a *NotFoundError with the
// answers of all addresses that were tried.
func Meet(ctx context.Context, c Config, host HostFunc) (*Meeting, error) {
	c.setDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	return newLocator(&c, host).locate(ctx)
}

// A cleanup contains functions to be called when the agent leaves, or has failed to meet the
// others.
type cleanup struct {
	mu    sync.Mutex
	funcs []func()
}

func (c *cleanup) add(f func()) {
	c.mu.Lock()
	c.funcs = append(c.funcs, f)
	c.mu.Unlock()
}

// run calls the functions, the last one first. Only the first call of run has an effect.
func (c *cleanup) run() {
	c.mu.Lock()
	funcs := c.funcs
	c.funcs = nil
	c.mu.Unlock()
	for _, f := range slices.Backward(funcs) {
		f()
	}
}
