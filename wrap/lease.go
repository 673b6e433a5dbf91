package wrap

import (
	"errors"
	"sync"
	"time"

	"rdzv/internal/boottime"
)

// ErrLeaseOver is the Err of a worker that was stopped because Tree.Lease was not renewed.
var ErrLeaseOver = errors.New("the time has passed until which the workers may run")

// Lease is a time until which the workers of a tree may run, which the owner renews as long as he
// may run them. It is enforced also if this process is stopped; see the package comment.
// The zero value has no limit until Renew. Its methods are safe for concurrent use.
type Lease struct {
	mu      sync.Mutex
	until   time.Duration // 0 is without a limit
	final   bool          // it does not change any more
	revoked bool
	changed chan struct{} // full if the Run that uses it has not read the state; nil without one
}

// Renew extends the lease until a time by CLOCK_BOOTTIME, which also counts the time in which a
// process or the machine was suspended. An earlier time than that of a call before has no effect.
func (l *Lease) Renew(until time.Duration) {
	l.change(func() { l.until = max(l.until, until) })
}

// Release ends the limit, for ever.
func (l *Lease) Release() { l.change(func() { l.until, l.final = 0, true }) }

// Expire ends the lease now, unless it is over, for ever: the workers have Tree.LeaseGrace.
func (l *Lease) Expire() {
	l.change(func() {
		l.final = true
		if now := boottime.Now(); l.until == 0 || now < l.until {
			l.until = now
		}
	})
}

// Revoke ends the lease now, unless it is over, for ever: everything is killed at once.
func (l *Lease) Revoke() {
	l.change(func() {
		l.final, l.revoked = true, l.until == 0 || boottime.Now() < l.until
	})
}

func (l *Lease) change(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.final {
		return
	}
	change()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// use returns a channel that delivers when the lease has changed, for one Run. A nil lease does not
// change.
func (l *Lease) use() <-chan struct{} {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed = make(chan struct{}, 1)
	if l.revoked {
		l.changed <- struct{}{}
	}
	return l.changed
}

// state returns until when the workers may run, and whether everything is to be killed. A nil lease
// has no limit.
func (l *Lease) state() (until time.Duration, revoked bool) {
	if l == nil {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until, l.revoked
}
