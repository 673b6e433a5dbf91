package watchdog

import (
	"os"
	"syscall"
	"time"

	"rdzv/internal/boottime"
	"rdzv/internal/procfs"
)

// lease is how long the tree may run unless the agent renews it. When it is over the workers
// receive SIGTERM, and after the grace everything is killed, also if the agent is frozen.
//
// If this process, or all workers, were stopped meanwhile, the agent may have been stopped too, and
// may renew the lease as soon as it runs again: then the whole tree is stopped (SIGSTOP) until it
// does, or orders the end of the tree.
type lease struct {
	until time.Duration // by package boottime; 0 is without a limit
	grace time.Duration

	wakeBy   time.Duration  // when serveAgent wakes at the latest
	paused   bool           // since the last renewal this process was stopped
	stopped  map[int]uint64 // pid and start of the processes stopped by hold; nil while not held
	searchAt time.Duration  // when hold is to search for processes that run
	pause    time.Duration  // between the last search and that
}

const (
	// leaseCheck is how often the watchdog checks at least whether it was stopped.
	leaseCheck = 2 * time.Second
	// pausedAfter is how late the watchdog wakes if it was stopped. It may be less on a busy machine:
	// then the tree is stopped, too, for as long as the agent needs to renew the lease or to end it.
	pausedAfter = 500 * time.Millisecond
	// A search that finds a process which runs is followed by others, at these intervals.
	firstPause, lastPause = 10 * time.Millisecond, time.Second
)

func (l *lease) over() bool { return l.until != 0 && boottime.Now() >= l.until }

// untilCheck is how long after now the lease is to be checked, and whether there is one.
func (l *lease) untilCheck() (wait time.Duration, leased bool) {
	now := boottime.Now()
	switch {
	case l.until == 0:
		return 1<<63 - 1, false
	case l.stopped != nil:
		return l.searchAt - now, true
	case now < l.until:
		return min(l.until-now, leaseCheck), true
	}
	return leaseCheck, true // it is being ended
}

func (w *watchdog) held() bool { return w.lease.stopped != nil }

// renew carries out the agent's order.
func (w *watchdog) renew(until, grace time.Duration) {
	l := &w.lease
	l.until, l.grace = until, grace
	if l.over() {
		return
	}
	l.paused = false
	stopped := l.stopped
	l.stopped = nil
	for pid, start := range stopped {
		if p, err := procfs.Read(procfs.System, pid); err == nil && p.Start == start {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// checkLease ends the tree, or stops it, when the lease is over.
func (w *watchdog) checkLease() {
	l, now := &w.lease, boottime.Now()
	if l.until == 0 {
		return
	}
	l.paused = l.paused || l.wakeBy != 0 && now > l.wakeBy+pausedAfter
	if now < l.until {
		return
	}
	w.reap() // which tells whether workers were continued
	switch end := l.until + l.grace; {
	case w.phase == killing:
	case w.phase == running && (l.paused || w.held() || w.suspended()):
		w.hold(now)
	case now >= end:
		w.tellLeaseOver()
		w.enter(killing, KillWait)
	case w.phase == running:
		w.tellLeaseOver()
		w.stop(end-now, false)
	}
}

func (w *watchdog) tellLeaseOver() {
	if w.phase == running {
		tell(Record{Kind: LeaseOver})
	}
}

// hold stops all processes of the tree that run. It searches for them again and again, because
// others may continue them.
func (w *watchdog) hold(now time.Duration) {
	l := &w.lease
	if l.stopped == nil {
		l.stopped = map[int]uint64{}
		l.continued()
	}
	if now < l.searchAt {
		return
	}
	for found := true; found; { // one that has forked before it was stopped has another child
		found = w.stopChildren(os.Getpid())
	}
	l.searchAt = boottime.Now() + l.pause
	l.pause = min(2*l.pause, lastPause)
}

// continued makes hold search at once, because a worker was continued.
func (l *lease) continued() { l.searchAt, l.pause = 0, firstPause }

// stopChildren stops the descendants of a process that run, parents first, and reports whether
// there were any.
func (w *watchdog) stopChildren(parent int) (found bool) {
	children, _ := procfs.Children(procfs.System, parent)
	for _, pid := range children {
		if pid == w.sentinel.pid {
			continue
		}
		p, err := procfs.Read(procfs.System, pid)
		if err != nil || p.State == 'Z' || p.State == 'X' {
			continue // its children are those of this process
		}
		if p.State != 'T' && p.State != 't' && syscall.Kill(pid, syscall.SIGSTOP) == nil {
			found = found || w.lease.stopped[pid] == 0
			w.lease.stopped[pid] = p.Start
		}
		found = w.stopChildren(pid) || found
	}
	return found
}

// killFrozenAgent kills the agent when the tree has ended because the lease was over and the agent
// is stopped: nobody else would. Otherwise the agent would remain until it is continued.
func (w *watchdog) killFrozenAgent() {
	if w.freeze.limit > 0 && w.lease.over() && w.freeze.frozen() {
		_ = syscall.Kill(w.freeze.agent, syscall.SIGKILL)
	}
}
