// Package receipt notes which signals the workers of an agent have received directly, not from the
// agent: a launcher may send a signal to all processes of its tasks.
package receipt

import (
	"slices"
	"sync"
	"syscall"
	"time"
)

// Life is how long a receipt counts for the same signal that agents share.
const Life = 2 * time.Second

// Receipts are those of the signals that agents share.
type Receipts struct {
	signals []syscall.Signal
	mu      sync.Mutex
	last    map[syscall.Signal]time.Time // until it has been taken
	noted   chan struct{}                // closed by the next Note
}

// New is for these signals.
func New(signals []syscall.Signal) *Receipts {
	return &Receipts{
		signals: signals, last: map[syscall.Signal]time.Time{}, noted: make(chan struct{}),
	}
}

// Any tells whether there are such signals, Has whether one is such a signal.
func (r *Receipts) Any() bool                 { return len(r.signals) > 0 }
func (r *Receipts) Has(s syscall.Signal) bool { return slices.Contains(r.signals, s) }

// Note notes that the workers have received a signal.
func (r *Receipts) Note(s syscall.Signal, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[s] = at
	close(r.noted)
	r.noted = make(chan struct{})
}

// Await tells whether the workers have received a signal in the last Life, or do so in this time.
// Each receipt is for one call. It returns false when stop is closed.
func (r *Receipts) Await(s syscall.Signal, wait time.Duration, stop <-chan struct{}) bool {
	since, late := time.Now().Add(-Life), time.NewTimer(wait)
	defer late.Stop()
	for {
		received, noted := r.take(s, since)
		if received {
			return true
		}
		select {
		case <-noted:
		case <-late.C:
			received, _ = r.take(s, since)
			return received
		case <-stop:
			return false
		}
	}
}

func (r *Receipts) take(s syscall.Signal, since time.Time) (received bool, noted <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if received = r.last[s].After(since); received {
		delete(r.last, s)
	}
	return received, r.noted
}
