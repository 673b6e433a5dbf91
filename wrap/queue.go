package wrap

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// queue are the workers that have not been started. They are started one after the other.
type queue struct {
	startAt []time.Time // of all workers
	next    int         // the first that has not been ordered to start
	starts  bool        // the one before it is being started
	missed  uint64      // signals to send to each when it has started: bit n-1 is signal n
}

// untilNext is how long the next worker must still wait.
func (q *queue) untilNext() time.Duration { return max(0, time.Until(q.startAt[q.next])) }

// startNow lets no worker wait any longer.
func (q *queue) startNow() { clear(q.startAt) }

// startNext starts the next worker if its time has come. None is started for an agent or task that
// has ended: a runner that is killed soon after it would leave what the worker creates.
func (a *attempt) startNext() {
	q := &a.queue
	if q.next == len(a.states) || q.starts || q.untilNext() > 0 || a.lease.limit.over() ||
		a.phase != atWork || a.isJobStopped() || a.isAlone() {
		return
	}
	q.starts = true
	a.starter.requests <- startRequest{a, q.next}
	q.next++
}

// skipAll reports that the remaining workers will not be started.
func (a *attempt) skipAll() {
	for q := &a.queue; q.next < len(a.states); q.next++ {
		a.states[q.next].ends.close()
		a.ended(q.next, notStarted)
	}
	a.settle()
}

// started handles the start of a worker, or that it could not be started. What has happened since
// it was ordered reaches it now.
func (a *attempt) started(r startResult) {
	q, s := &a.queue, &a.states[r.worker]
	q.starts = false
	s.ends.close()
	a.settle()
	if r.err != nil {
		a.early = nil
		code := 126
		if errors.Is(r.err, syscall.ENOENT) {
			code = 127
		}
		err := fmt.Errorf("cannot start %q: %w", a.tree.Workers[r.worker].Path, r.err)
		a.ended(r.worker, Result{Code: code, Err: err})
		a.reportSuspended()
		return
	}
	s.pid, s.startedAt = r.pid, r.at
	a.running++
	allRead := a.outputs.readsAll(r.worker)
	a.report(workerStarted, startMessage{r.worker, r.pid, instantOf(r.at), allRead})
	for n, missed := 1, q.missed; missed != 0; n, missed = n+1, missed>>1 {
		if missed&1 != 0 {
			a.signal(s, syscall.Signal(n), false)
		}
	}
	switch {
	case a.phase != atWork:
		a.end(s, s.endSignal(a.dumpTerm))
	case a.dumpAll:
		a.announceDump(true)
	}
	a.stopLate(s)
	if status, ok := a.early[r.pid]; ok && !status.Continued() {
		a.changed(r.pid, status)
	}
	a.early = nil
}

// settle gives up what is not needed when no worker will be started any more: files, so that pipes
// end when the workers do, and processors, so that a runner of one worker rarely wakes a thread.
func (a *attempt) settle() {
	if a.queue.next < len(a.states) || a.queue.starts {
		return
	}
	for _, f := range a.files {
		_ = f.Close()
	}
	a.files = nil
	runtime.GOMAXPROCS(processors(len(a.states)))
}

// processors is how many a runner uses for this many workers.
func processors(workers int) int { return min(workers, 4, runtime.NumCPU()) }
