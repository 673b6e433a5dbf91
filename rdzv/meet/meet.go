package meet

import (
	"context"
	"slices"
	"sync"

	"rdzv/rdzv/meet/internal/gate"
)

// Meet returns when this agent either hosts the store (host has returned without error) or holds a
// verified connection to it. Until then it tries, and ctx ends that: the error is then a
// *NotFoundError that says what every address answered.
func Meet(ctx context.Context, c Config, host HostFunc) (*Meeting, error) {
	c.fill()
	if err := c.check(); err != nil {
		return nil, err
	}
	return newFinder(&c, host).find(ctx, nil)
}

// A finder is one agent's looking for the store, over as many stores as it takes.
type finder struct {
	config    *Config
	host      HostFunc
	strangers *strangers
	ending    ending
}

func newFinder(c *Config, host HostFunc) *finder {
	return &finder{config: c, host: host, strangers: &strangers{notify: c.Notify}}
}

// find runs the row that holds for this agent; past are stores whose job is over. Whatever way it
// fails, a panic included, the launcher is told.
func (f *finder) find(ctx context.Context, past []gate.Instance) (m *Meeting, err error) {
	defer func() {
		if m == nil {
			f.ending.end()
		}
	}()
	p, elect, err := choose(ctx, f.config, f.ending.onEnd)
	if err != nil {
		return nil, err
	}
	return f.meet(ctx, past, p, elect)
}

func (f *finder) meet(ctx context.Context, past []gate.Instance, p *plan, elect election) (*Meeting, error) {
	c := f.config
	j := &joiner{start: f.host, host: c.Host, past: past, strangers: f.strangers, notify: c.Notify}
	m, err := elect(ctx, j, p)
	if err != nil {
		return nil, err
	}
	m.network, m.end = c.network(), f.ending.end
	m.again = func(ctx context.Context) (*Meeting, error) { return f.find(ctx, append(slices.Clip(past), m.id)) }
	return m, nil
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
