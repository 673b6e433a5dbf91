package wrap

import "sync"

// calls makes the calls of Tree.Started and Tree.Ended in order and one at a time, in a goroutine
// of its own, so that they do not delay the supervision.
type calls struct {
	once  sync.Once
	queue chan func()
	done  chan struct{}
}

// newCalls returns calls for at most n of them.
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

// wait returns after the last call. Then no more can be added. It may be called again.
func (c *calls) wait() {
	c.once.Do(func() { close(c.queue) })
	<-c.done
}
