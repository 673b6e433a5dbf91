package wrap

import "sync"

// calls makes the calls that a caller of Run asked for, in their order and one at a time, aside from the supervision,
// which they may not hold up.
type calls struct {
	once  sync.Once
	queue chan func()
	done  chan struct{}
}

// newCalls takes at most n calls.
func newCalls(n int) *calls {
	c := &calls{queue: make(chan func(), n), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for call := range c.queue {
			call()
		}
	}()
	return c
}

func (c *calls) add(call func()) { c.queue <- call }

// wait returns after the last call; no more can be added. It may be called again.
func (c *calls) wait() {
	c.once.Do(func() { close(c.queue) })
	<-c.done
}
