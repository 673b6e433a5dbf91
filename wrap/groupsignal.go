package wrap

import (
	"slices"
	"syscall"
	"time"
)

// subscribe makes the source receive the sentinel's reports.
func (r *run) subscribe() {
	if r.guard.reports != nil {
		r.reports = r.tree.Source.subscribe(r.guard, len(r.states))
	}
}

// unsubscribe is called when the watchdog has ended. It has ended the sentinel, or that dies with
// it.
func (r *run) unsubscribe() {
	if r.reports == nil {
		return
	}
	// A sentinel that is still alive is killed later, by takeOver.
	_ = r.guard.reports.SetReadDeadline(time.Now().Add(barrierWait))
	<-r.reports.done
	r.guard.reports.Close()
}

const (
	// barrierWait is how long to wait for a Barrier: the sentinel may be stopped, with its group.
	barrierWait = time.Second
	// silentBarrierWait replaces barrierWait if the Barrier before was not reported in time.
	silentBarrierWait = 20 * time.Millisecond
	// separateWait is how long the result of a worker that was killed by a signal waits for a
	// report after the Barrier: each process may have been signalled separately.
	separateWait = 10 * time.Millisecond
)

// groupSignal is Result.GroupSignal of a worker started at startedAt, or never if that is zero. It
// must be called once for each end of a worker.
func (r *run) groupSignal(startedAt time.Time, result Result) syscall.Signal {
	if r.reports == nil || startedAt.IsZero() || result.Stopped {
		return 0
	}
	limit := barrierWait
	if r.silent { // many workers may end at the same time
		limit = silentBarrierWait
	}
	r.silent = !r.await(r.reports.barriers, limit)
	sig := r.tree.Source.receivedSince(startedAt, result.Signal)
	if sig == 0 && slices.Contains(endSignals, result.Signal) {
		r.await(nil, separateWait)
		sig = r.tree.Source.receivedSince(startedAt, result.Signal)
	}
	return sig
}

// await waits for c or the end of the reports, at most d. It reports false after d.
func (r *run) await(c <-chan struct{}, d time.Duration) bool {
	select {
	case <-c:
	case <-r.reports.done:
	case <-time.After(d):
		return false
	}
	return true
}
