package holder

// See child.go for what the functions of this file may do.

const (
	// A holder with a lease wakes so often at least, and was stopped if it wakes so much later.
	leaseLook   = 2 * second
	pausedAfter = 500 * millisecond
	// leaseMargin is how long after its time the holder ends a tree that the agent does not end.
	leaseMargin = 300 * millisecond
	// leaseLate is how often the holder looks then whether the agent has stopped the tree.
	leaseLate = 50 * millisecond
	// resumeWait is how long an agent may take to stop, or to renew, after a pause.
	resumeWait = second
)

// lease is how long the workers may run. All times are by boottime.
type lease struct {
	until   *int64 // when it is over, in ns; 0 is never
	shared  *Shared
	workers *workers

	wakeBy  int64 // when the holder wakes at the latest; 0 is never
	resumed int64 // when the holder was continued
	told    bool  // LeaseOver has been sent
}

//go:nosplit
//go:norace
//go:nocheckptr
func (l *lease) untilLook(now int64) int64 {
	until := *l.until
	left := until + leaseMargin - now
	switch {
	case until == 0:
		return never
	case left > 0:
		return min(left, leaseLook)
	case l.shared.Held == 0 && l.workers.running():
		return leaseLate
	}
	return leaseLook
}

// sleep is called before the holder waits for so long.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (l *lease) sleep(wait int64) {
	l.wakeBy = 0
	if wait != never {
		l.wakeBy = clock(clockBoottime) + wait
	}
}

// wokeLate tells whether the holder was stopped until now.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (l *lease) wokeLate(now int64) bool {
	late := l.wakeBy != 0 && now > l.wakeBy+pausedAfter
	if late {
		l.resumed = now
	}
	return late
}

// late is how long the workers have run too long; negative if they may run, or the agent may be
// about to stop them.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (l *lease) late(now int64) int64 {
	until := *l.until
	resumed := max(l.resumed, l.workers.continued)
	if until == 0 || l.shared.Held != 0 || !l.workers.running() || now < resumed+resumeWait {
		return -1
	}
	return now - until - leaseMargin
}
