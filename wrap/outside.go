package wrap

import (
	"slices"
	"syscall"
	"time"
)

// listen makes the source hear what the sentinel reports.
func (r *run) listen() {
	if r.guard.reports != nil {
		r.deaf = r.tree.Source.attach(r.guard.reports)
	}
}

// stopListening is for when the watchdog, and with it the sentinel, has gone.
func (r *run) stopListening() {
	if r.deaf == nil {
		return
	}
	_ = r.guard.reports.SetReadDeadline(time.Now().Add(shareWait)) // a sentinel that outlives its watchdog is swept later
	<-r.deaf
	r.guard.reports.Close()
}

// outsideWait is how long a worker's death by a signal that a group may get waits for the sentinel's report of it.
const outsideWait = 5 * time.Millisecond

// outside is Result.Outside of a worker that began at began (zero: it never ran).
func (r *run) outside(began time.Time, result Result) syscall.Signal {
	if r.tree.Source == nil || began.IsZero() {
		return 0
	}
	sig := r.tree.Source.reachedSince(began, result.Signal)
	if sig == 0 && !result.Stopped && slices.Contains(endings, result.Signal) {
		time.Sleep(outsideWait)
		sig = r.tree.Source.reachedSince(began, result.Signal)
	}
	return sig
}
