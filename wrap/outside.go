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

// stopListening is for when the watchdog, and with it the sentinel, has gone.
func (r *run) stopListening() {
	if r.hearing == nil {
		return
	}
	_ = r.guard.reports.SetReadDeadline(time.Now().Add(barrierWait)) // a sentinel that outlives its watchdog is swept later
	<-r.hearing.done
	r.guard.reports.Close()
}

// barrierWait bounds the wait for a barrier: the sentinel may be stopped, with the whole group.
// oneByOneWait is how long a worker's death by a signal waits for a report that follows the barrier, as it may when
// each process was signalled by itself.
const (
	barrierWait  = time.Second
	oneByOneWait = 10 * time.Millisecond
)

// outside is Result.Outside of a worker that began at began (zero: it never ran). It is to be called once for each end.
func (r *run) outside(began time.Time, result Result) syscall.Signal {
	if r.hearing == nil || began.IsZero() || result.Stopped {
		return 0
	}
	r.await(r.hearing.barriers, barrierWait)
	sig := r.tree.Source.reachedSince(began, result.Signal)
	if sig == 0 && slices.Contains(endings, result.Signal) {
		r.await(nil, oneByOneWait)
		sig = r.tree.Source.reachedSince(began, result.Signal)
	}
	return sig
}

// await waits for c, the end of the hearing, or d.
func (r *run) await(c <-chan struct{}, d time.Duration) {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-c:
	case <-r.hearing.done:
	case <-late.C:
	}
}
