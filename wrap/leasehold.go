package wrap

import (
	"sync/atomic"
	"syscall"
	"time"

	"rdzv/internal/boottime"
	"rdzv/internal/procfs"
	"rdzv/wrap/internal/holder"
)

// When a lease is over the workers receive SIGTERM, and after the grace everything is killed. The
// holder does so a little later if this process does not: it may be frozen.
//
// If this process, or all workers, were stopped meanwhile, the lease may be renewed as soon as they
// run again: then the whole tree is stopped (SIGSTOP) until it is, or until the tree ends.

// hold is the state of a lease.
type hold struct {
	holder *client
	until  time.Duration // by package boottime; 0 is without a limit
	grace  time.Duration
	others bool // another process owns it, and does not tell when it renews it
	told   bool // the tree is being ended because the lease is over

	wakeBy   time.Duration  // when supervise wakes at the latest
	paused   bool           // since the last renewal this process was stopped
	pausedAt time.Duration  // when that was noticed
	stopped  map[int]uint64 // pid and start of the processes stopped by stopTree; nil while not held
	searchAt time.Duration  // when stopTree is to search for processes that run
	pause    time.Duration  // between the last search and that
}

const (
	// leaseCheck is how often at least it is checked whether this process was stopped.
	leaseCheck = 2 * time.Second
	// pausedAfter is how late this process wakes if it was stopped. It may be less on a busy machine:
	// then the tree is stopped, too, for as long as it takes to renew the lease or to end it.
	pausedAfter = 500 * time.Millisecond
	// A search that finds a process which runs is followed by others, at these intervals.
	firstPause, lastPause = 10 * time.Millisecond, time.Second
	// heldCheck is how often a lease that another process owns is read while the tree is stopped.
	heldCheck = 20 * time.Millisecond
)

func (h *hold) over() bool { return h.until != 0 && boottime.Now() >= h.until }

// untilCheck is how long after now the lease is to be checked.
func (h *hold) untilCheck() time.Duration {
	now := boottime.Now()
	switch {
	case h.until == 0:
		return time.Hour
	case h.stopped != nil && h.others:
		return min(h.searchAt-now, heldCheck)
	case h.stopped != nil:
		return h.searchAt - now
	case now < h.until && h.others: // the holder notices when both are stopped
		return h.until - now
	case now < h.until:
		return min(h.until-now, leaseCheck)
	}
	return leaseCheck // it is being ended
}

// sleep notes that supervise is about to wait.
func (h *hold) sleep(wait time.Duration) {
	if h.wakeBy = 0; h.until != 0 {
		h.wakeBy = boottime.Now() + max(0, wait)
	}
}

// wasStopped notes that this process, or the holder, was stopped until now.
func (h *hold) wasStopped() { h.paused, h.pausedAt = true, boottime.Now() }

// continued makes stopTree search at once, because a worker was continued.
func (h *hold) continued() { h.searchAt, h.pause = 0, firstPause }

// renew takes over the state of Tree.Lease. It reports whether everything is to be killed.
func (h *hold) renew(t *Tree) (kill bool) {
	until, renewed, revoked := t.Lease.state()
	if revoked {
		return true
	}
	shared := h.holder.holder.Shared
	begins := h.until == 0 && until != 0
	h.until, h.grace = until, t.LeaseGrace
	atomic.StoreInt64(&shared.LeaseGrace, int64(h.grace))
	atomic.StoreInt64(&shared.LeaseUntil, int64(until))
	if begins { // the holder may wait for ever
		h.holder.order(holder.Record{Kind: holder.Look})
	}
	if h.over() {
		return false
	}
	h.paused = h.paused && renewed <= h.pausedAt
	stopped := h.stopped
	h.stopped = nil
	for pid, start := range stopped {
		if p, err := procfs.Read(procfs.System, pid); err == nil && p.Start == start {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	h.setHeld(false)
	return false
}

// setHeld tells the holder whether this process holds the tree.
func (h *hold) setHeld(held bool) {
	value := int64(0)
	if held {
		value = 1
	}
	if atomic.SwapInt64(&h.holder.holder.Shared.Held, value) != value {
		h.holder.order(holder.Record{Kind: holder.Look})
	}
}

// checkLease ends the tree, or stops it, when the lease is over.
func (r *run) checkLease() {
	h, now := &r.lease, boottime.Now()
	if h.wakeBy != 0 && now > h.wakeBy+pausedAfter {
		h.wasStopped()
	}
	if h.others {
		h.renew(r.tree) // Changed tells of its revocation
	}
	if h.until == 0 || now < h.until {
		return
	}
	switch end := h.until + h.grace; {
	case r.phase == killing:
	case r.phase == atWork && (h.paused || h.stopped != nil || r.suspended()):
		h.stopTree(now)
	case now >= end:
		h.told = h.told || r.phase == atWork
		r.enter(killing, holder.KillWait)
	case r.phase == atWork:
		h.told = true
		r.endTree(end-now, &Stop{})
	}
}

// suspended tells whether all workers are stopped, as by Ctrl-Z, to be continued later.
func (r *run) suspended() bool {
	some := false
	for i := range r.states {
		s := &r.states[i]
		if s.runs() && (!s.suspended || r.lease.stopped[s.pid] != 0) {
			return false
		}
		some = some || s.runs()
	}
	return some
}

// stopTree stops all processes of the tree that run. It searches for them again and again, because
// others may continue them.
func (h *hold) stopTree(now time.Duration) {
	if h.stopped == nil {
		h.stopped = map[int]uint64{}
		h.continued()
		h.setHeld(true)
	}
	if now < h.searchAt {
		return
	}
	for found := true; found; { // one that has forked before it was stopped has another child
		found = h.stopChildren(h.holder.holder.PID)
	}
	h.searchAt = boottime.Now() + h.pause
	h.pause = min(2*h.pause, lastPause)
}

// stopChildren stops the descendants of a process that run, parents first, and reports whether
// there were any.
func (h *hold) stopChildren(parent int) (found bool) {
	children, _ := procfs.Children(procfs.System, parent)
	for _, pid := range children {
		p, err := procfs.Read(procfs.System, pid)
		if err != nil || p.State == 'Z' || p.State == 'X' {
			continue // its children are those of the holder
		}
		if p.State != 'T' && p.State != 't' && syscall.Kill(pid, syscall.SIGSTOP) == nil {
			found = found || h.stopped[pid] == 0
			h.stopped[pid] = p.Start
		}
		found = h.stopChildren(pid) || found
	}
	return found
}
