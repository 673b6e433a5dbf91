package wrap

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/boottime"
	"rdzv/internal/procfs"
)

// When a lease is over the workers receive SIGTERM, and after the grace everything is killed.
//
// If this process, or all workers, were stopped meanwhile, or when these have ended all that they
// have left, the lease may be renewed as soon as they run again: then the whole tree is stopped
// (SIGSTOP) until it is, or until the tree ends.

// hold is what becomes of a lease.
type hold struct {
	limit limit
	told  bool // the tree is being ended because the lease is over

	wakeBy   time.Duration  // when the runner wakes at the latest, by package boottime
	paused   bool           // since the last renewal this process was stopped
	pausedAt time.Duration  // when that was noticed
	stopped  map[int]uint64 // pid and start of processes that stopAll has stopped; nil before
	groups   map[int]bool   // process groups that it has stopped
	searchAt time.Duration  // when stopAll is to search for processes that run
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
)

// untilCheck is how long after now the lease is to be checked.
func (h *hold) untilCheck() time.Duration {
	now := boottime.Now()
	switch {
	case h.limit.Until == 0:
		return time.Hour
	case h.stopped != nil:
		return h.searchAt - now
	case now < h.limit.Until:
		return min(h.limit.Until-now, leaseCheck)
	}
	return leaseCheck // it is being ended
}

// sleep notes that the runner is about to wait.
func (h *hold) sleep(wait time.Duration) {
	if h.wakeBy = 0; h.limit.Until != 0 {
		h.wakeBy = boottime.Now() + max(0, wait)
	}
}

// continued makes stopAll search at once, because a worker was continued.
func (h *hold) continued() { h.searchAt, h.pause = 0, firstPause }

// limit takes over a change of the lease.
func (a *attempt) limit(l limit) {
	if l.Kill {
		a.kill()
		return
	}
	h := &a.lease
	h.check() // before the renewal, which may be old
	if h.limit = l; l.over() {
		return
	}
	h.paused = h.paused && l.Renewed <= h.pausedAt
	h.resume()
}

// check notes whether this process was stopped until now.
func (h *hold) check() {
	if now := boottime.Now(); h.wakeBy != 0 && now > h.wakeBy+pausedAfter {
		h.paused, h.pausedAt, h.wakeBy = true, now, 0
	}
}

// checkLease ends the tree, or stops it, when the lease is over.
func (a *attempt) checkLease() {
	h := &a.lease
	h.check()
	now := boottime.Now()
	if h.limit.Until == 0 || now < h.limit.Until {
		return
	}
	switch end := h.limit.Until + a.tree.LeaseGrace; {
	case a.phase == killing:
	case a.phase == atWork && (h.paused || h.stopped != nil || a.areSuspended()):
		if h.limit.Revoked {
			a.kill()
			return
		}
		a.stopAll(now)
	case now >= end:
		h.told = h.told || a.phase == atWork
		a.kill()
	case a.phase == atWork:
		h.told = true
		a.endTree(end-now, &Stop{})
	}
}

// areSuspended tells whether all workers or, when these have ended, all that they have left, are
// stopped, as by Ctrl-Z, to be continued later.
func (a *attempt) areSuspended() bool {
	some := false
	for i := range a.states {
		s := &a.states[i]
		held := a.lease.stopped[s.pid] != 0 || a.lease.groups[s.pid]
		if s.runs() && (!s.suspended || held) {
			return false
		}
		some = some || s.runs()
	}
	return some || a.orphansAreStopped()
}

// orphansAreStopped tells whether there are orphans, and all are stopped, not by stopAll.
func (a *attempt) orphansAreStopped() (some bool) {
	for _, pid := range a.orphans() {
		switch p, err := procfs.Read(procfs.System, pid); {
		case err != nil, p.State == 'Z', p.State == 'X':
		case p.State != 'T', a.lease.stopped[pid] != 0:
			return false
		default:
			some = true
		}
	}
	return some
}

// stopAll stops all processes of the tree that run, the groups of the workers first. It searches
// for them again and again, because others may continue them.
func (a *attempt) stopAll(now time.Duration) {
	h := &a.lease
	if h.stopped == nil {
		h.stopped, h.groups = map[int]uint64{}, map[int]bool{}
		h.continued()
	}
	if now < h.searchAt {
		return
	}
	for i := range a.states {
		if s := &a.states[i]; s.runs() {
			h.stopGroup(s.pid)
		}
	}
	for found := true; found; { // one that has forked before it was stopped has another child
		found = h.stopBelow(unix.Getpid())
	}
	h.searchAt = boottime.Now() + h.pause
	h.pause = min(2*h.pause, lastPause)
}

// stopGroup stops the process group of a worker that has one of its own. That of a worker which is
// stopped is left alone: it may be for another reason.
func (h *hold) stopGroup(pid int) {
	group, err := unix.Getpgid(pid)
	if err != nil || group != pid || procfs.IsStopped(procfs.System, pid) {
		return
	}
	if syscall.Kill(-group, syscall.SIGSTOP) == nil {
		h.groups[group] = true
	}
}

// stopBelow stops the descendants of a process that run, parents first, and reports whether there
// were any.
func (h *hold) stopBelow(parent int) (found bool) {
	children, _ := procfs.Children(procfs.System, parent)
	for _, pid := range children {
		p, err := procfs.Read(procfs.System, pid)
		if err != nil || p.State == 'Z' || p.State == 'X' {
			continue // its children are those of the runner
		}
		if p.State != 'T' && p.State != 't' && syscall.Kill(pid, syscall.SIGSTOP) == nil {
			found = found || h.stopped[pid] == 0
			h.stopped[pid] = p.Start
		}
		found = h.stopBelow(pid) || found
	}
	return found
}

// resume continues what has been stopped.
func (h *hold) resume() {
	for group := range h.groups { // their numbers are those of workers, which have not been reaped
		_ = syscall.Kill(-group, syscall.SIGCONT)
	}
	for pid, start := range h.stopped {
		if p, err := procfs.Read(procfs.System, pid); err == nil && p.Start == start {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	h.stopped, h.groups = nil, nil
}
