package wrap

import (
	"syscall"
	"time"

	"rdzv/wrap/internal/holder"
)

// queue are the workers that have not been started. They are started one after the other.
type queue struct {
	startAt []time.Time // of all workers
	next    int         // the first that has not been ordered to start
	ordered int         // how many of those before it the holder has not started or refused yet
	missed  uint64      // signals to send to each when it has started: bit n-1 is signal n
}

// untilNext is how long the next worker must still wait.
func (q *queue) untilNext() time.Duration { return max(0, time.Until(q.startAt[q.next])) }

// startNow lets no worker wait any longer.
func (q *queue) startNow() { clear(q.startAt) }

// maxOrdered limits how many workers the holder starts before it can carry out another order.
const maxOrdered = 8

// startNext starts the workers whose time has come.
func (r *run) startNext() {
	q := &r.queue
	for q.next < len(r.states) && q.ordered < maxOrdered && q.untilNext() == 0 &&
		!r.lease.over() && r.phase == atWork {
		q.ordered++
		r.holder.order(holder.Record{Kind: holder.Start, Index: q.next})
		q.next++
	}
}

// skipAll reports that the remaining workers will not be started.
func (r *run) skipAll() {
	for q := &r.queue; q.next < len(r.states); q.next++ {
		r.ended(q.next, notStarted)
	}
}

// started handles the start of worker i. What has happened since it was ordered reaches it now.
func (r *run) started(i, pid int, at time.Duration) {
	s := &r.states[i]
	s.pid, s.began, s.startedAt = pid, at, time.Now().Add(at-holder.Monotonic())
	r.running++
	r.queue.ordered--
	if r.tree.Started != nil {
		r.calls <- func() { r.tree.Started(i, pid) }
	}
	for n, missed := 1, r.queue.missed; missed != 0; n, missed = n+1, missed>>1 {
		if missed&1 != 0 {
			r.holder.send(s, syscall.Signal(n), 0)
		}
	}
	switch {
	case r.phase != atWork:
		r.end(s, s.endSignal(r.dumpTerm))
	case r.dumpAll:
		r.announceDump(true)
	}
}
