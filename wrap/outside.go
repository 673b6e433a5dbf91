package wrap

import (
	"slices"
	"syscall"
	"time"
)

// listen makes the source hear what the sentinel reports.
func (r *run) listen() {
	if r.guard.reports != nil {
		r.hearing = r.tree.Source.attach(r.guard, len(r.states))
	}
}

// stopListening is for when the watchdog has gone, and with it the sentinel, which it ends or which dies with it.
func (r *run) stopListening() {
	if r.hearing == nil {
		return
	}
	_ = r.guard.reports.SetReadDeadline(time.Now().Add(barrierWait)) // a sentinel that outlives its watchdog is swept later
	<-r.hearing.done
	r.guard.reports.Close()
}

// barrierWait bounds the wait for a barrier: the sentinel may be stopped, with the whole group. Then
// barrierAgainWait bounds it.
// oneByOneWait is how long a worker's death by a signal waits for a report that follows the barrier, as it may when
// each process was signalled by itself.
const (
	barrierWait      = time.Second
	barrierAgainWait = 20 * time.Millisecond
	oneByOneWait     = 10 * time.Millisecond
)

// outside is Result.Outside of a worker that began at began (zero: it never ran). It is to be called once for each end.
func (r *run) outside(began time.Time, result Result) syscall.Signal {
	if r.hearing == nil || began.IsZero() || result.Stopped {
		return 0
	}
	limit := barrierWait
	if r.unheard { // the last barrier was waited for in vain: all workers may end at once
		limit = barrierAgainWait
	}
	r.unheard = !r.await(r.hearing.barriers, limit)
	sig := r.tree.Source.reachedSince(began, result.Signal)
	if sig == 0 && slices.Contains(endings, result.Signal) {
		r.await(nil, oneByOneWait)
		sig = r.tree.Source.reachedSince(began, result.Signal)
	}
	return sig
}

// await waits for c, the end of the hearing, or d. It reports whether it was not in vain.
func (r *run) await(c <-chan struct{}, d time.Duration) bool {
	select {
	case <-c:
	case <-r.hearing.done:
	case <-time.After(d):
		return false
	}
	return true
}
