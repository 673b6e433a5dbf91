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
// The zero value has no limit until Renew. Its methods are safe for concurrent use, and several
// trees may have the same lease.
type Lease struct {
	mu      sync.Mutex
	now     limit
	final   bool                   // it does not change any more
	waiting map[chan struct{}]bool // those that wait for changes; full if one has not read the last
}

// limit is what a runner knows of a Lease. The times are by package boottime.
type limit struct {
	Until   time.Duration // 0 is without a limit
	Renewed time.Duration // when Until was last changed
	Revoked bool          // it does not change any more
	Kill    bool          // it was revoked before it was over: everything is to be killed
}

func (l limit) over() bool { return l.Until != 0 && boottime.Now() >= l.Until }

// Renew extends the lease until a time by CLOCK_BOOTTIME, which also counts the time in which a
// process or the machine was suspended. An earlier time than that of a call before has no effect.
func (l *Lease) Renew(until time.Duration) {
	l.change(false, func(n *limit) { n.set(max(until, n.Until)) })
}

// Release ends the limit, for ever.
func (l *Lease) Release() { l.change(true, func(n *limit) { n.set(0) }) }

// Expire ends the lease now, unless it is over, for ever: the workers have Tree.LeaseGrace.
func (l *Lease) Expire() {
	l.change(true, func(n *limit) {
		if !n.over() {
			n.set(boottime.Now())
		}
	})
}

// Revoke ends the lease now, for ever: everything is killed at once. If it is over, workers that
// have received SIGTERM keep the rest of Tree.LeaseGrace.
func (l *Lease) Revoke() {
	l.change(true, func(n *limit) { n.Revoked, n.Kill = true, !n.over() })
}

// OverFor is for how long the lease has been over; 0 if it is not.
func (l *Lease) OverFor() time.Duration {
	if until := l.limit().Until; until != 0 {
		return max(0, boottime.Now()-until)
	}
	return 0
}

func (n *limit) set(until time.Duration) { n.Until, n.Renewed = until, boottime.Now() }

func (l *Lease) change(final bool, change func(*limit)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.final {
		return
	}
	change(&l.now)
	l.final = final
	for c := range l.waiting {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// use returns a channel that delivers when the lease has changed, until drop. That of a nil lease
// never delivers.
func (l *Lease) use() chan struct{} {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan struct{}, 1)
	if l.waiting == nil {
		l.waiting = map[chan struct{}]bool{}
	}
	l.waiting[c] = true
	return c
}

func (l *Lease) drop(c chan struct{}) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, c)
	}
}

func (l *Lease) limit() limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}
