package wrap

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
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
	mu     sync.Mutex
	own    terms
	mapped *terms   // in memory that processes share; nil is own
	file   *os.File // of that memory, if this process has made it
	others bool     // another process writes the terms
	final  bool     // it does not change any more
	// Those that wait for changes: full if one has not read the terms; true if also for renewals.
	waiting map[chan struct{}]bool
}

// terms are the values of a Lease, in ns by package boottime. They may be in memory that other
// processes read, see Share.
type terms struct {
	until   int64 // 0 is without a limit
	renewed int64 // when until was last changed
	revoked int64 // 1: everything is to be killed
}

// Renew extends the lease until a time by CLOCK_BOOTTIME, which also counts the time in which a
// process or the machine was suspended. An earlier time than that of a call before has no effect.
func (l *Lease) Renew(until time.Duration) {
	l.change(func(t *terms) { t.set(max(int64(until), t.until)) })
}

// Release ends the limit, for ever.
func (l *Lease) Release() { l.end(func(t *terms) { t.set(0) }) }

// Expire ends the lease now, unless it is over, for ever: the workers have Tree.LeaseGrace.
func (l *Lease) Expire() {
	l.end(func(t *terms) {
		if now := int64(boottime.Now()); t.until == 0 || now < t.until {
			t.set(now)
		}
	})
}

// Revoke ends the lease now, unless it is over, for ever: everything is killed at once.
func (l *Lease) Revoke() {
	l.end(func(t *terms) {
		if t.until == 0 || int64(boottime.Now()) < t.until {
			atomic.StoreInt64(&t.revoked, 1)
		}
	})
}

// OverFor is for how long the lease has been over; 0 if it is not.
func (l *Lease) OverFor() time.Duration {
	if until, _, _ := l.state(); until != 0 {
		return max(0, boottime.Now()-until)
	}
	return 0
}

// Changes returns a channel that delivers, until cancel is called, after a change of which another
// process must be told with Changed: neither a renewal nor what it has read with OpenLease. That of
// a nil lease never delivers.
func (l *Lease) Changes() (changes <-chan struct{}, cancel func()) {
	c := l.use(false)
	return c, func() { l.drop(c) }
}

func (l *Lease) end(change func(*terms)) {
	l.change(func(t *terms) {
		change(t)
		l.final = true
	})
}

func (l *Lease) change(change func(*terms)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.final {
		t := l.terms()
		limited := t.until != 0
		change(t)
		l.tell(limited && !l.final)
	}
}

// tell makes all that wait read the terms, or of a renewal those that wait for one. mu is held.
func (l *Lease) tell(renewal bool) {
	for c, renewals := range l.waiting {
		if renewal && !renewals {
			continue
		}
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// use returns a channel that delivers when the lease has changed, for one Run, which passes it to
// drop at its end. A nil lease does not change.
func (l *Lease) use(renewals bool) chan struct{} {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan struct{}, 1)
	if l.waiting == nil {
		l.waiting = map[chan struct{}]bool{}
	}
	l.waiting[c] = renewals
	if atomic.LoadInt64(&l.terms().revoked) != 0 {
		c <- struct{}{}
	}
	return c
}

func (l *Lease) drop(c chan struct{}) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, c)
	}
}

// state returns until when the workers may run, when that was said, and whether everything is to be
// killed. A nil lease has no limit.
func (l *Lease) state() (until, renewed time.Duration, revoked bool) {
	if l == nil {
		return 0, 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.terms()
	at := atomic.LoadInt64(&t.renewed) // before until, which is written first
	return time.Duration(atomic.LoadInt64(&t.until)), time.Duration(at),
		atomic.LoadInt64(&t.revoked) != 0
}

// terms are those that count. mu is held.
func (l *Lease) terms() *terms {
	if l.mapped != nil {
		return l.mapped
	}
	return &l.own
}

func (t *terms) set(until int64) {
	atomic.StoreInt64(&t.until, until)
	atomic.StoreInt64(&t.renewed, int64(boottime.Now()))
}
