package login

import (
	"context"
	"sync"
)

// first lets one host get the binary before all others look for it again: if they share a home
// directory, they find it there.
type first struct {
	mu    sync.Mutex
	taken bool
	done  chan struct{}
}

func newFirst() *first { return &first{done: make(chan struct{})} }

// wait returns at once for the first caller; the others wait until that one is done. Everyone calls
// the function that it returns when it is done.
func (f *first) wait(ctx context.Context) (done func()) {
	f.mu.Lock()
	isFirst := !f.taken
	f.taken = true
	f.mu.Unlock()
	if isFirst {
		return func() { close(f.done) }
	}
	select {
	case <-f.done:
	case <-ctx.Done():
	}
	return func() {}
}
