package meet

import (
	"context"
	"slices"
	"sync"
)

// Meet returns when this agent either hosts the store (host has returned without error) or holds a
// verified connection to it. Until then it tries, and ctx ends that: the error is then a
// *NotFoundError that says what every address answered.
func Meet(ctx context.Context, c Config, host HostFunc) (*Meeting, error) {
	c.fill()
	if err := c.check(); err != nil {
		return nil, err
	}
	return newJoiner(&c, host).find(ctx)
}

// An ending is what is to be done when the agent leaves, or cannot meet the others.
type ending struct {
	mu   sync.Mutex
	list []func()
}

// onEnd has f called by end.
func (e *ending) onEnd(f func()) {
	e.mu.Lock()
	e.list = append(e.list, f)
	e.mu.Unlock()
}

// end undoes what has been done, the last first. Only the first call does anything.
func (e *ending) end() {
	e.mu.Lock()
	list := e.list
	e.list = nil
	e.mu.Unlock()
	for _, f := range slices.Backward(list) {
		f()
	}
}
