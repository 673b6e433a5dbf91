package wrap

import (
	"syscall"
	"time"

	"rdzv/wrap/internal/watchdog"
)

// handle handles a record of the watchdog.
func (r *run) handle(e watchdog.Record) {
	switch e.Kind {
	case watchdog.Started:
		r.started(e)
	case watchdog.Refused:
		r.ended(e.Index, startFailed(r.tree.Workers[e.Index], syscall.Errno(e.A)))
	case watchdog.Skipped:
		r.ended(e.Index, notStarted)
	case watchdog.Ended:
		result := Result{
			PID: r.states[e.Index].pid, Stopped: e.C == 1, Took: time.Duration(e.B),
		}
		result.setStatus(syscall.WaitStatus(e.A))
		r.ended(e.Index, result)
	case watchdog.Suspended:
		r.suspended(e.Index, syscall.Signal(e.A))
	case watchdog.Continued:
		r.states[e.Index].suspended = false
	case watchdog.Survivor:
		r.survivors = append(r.survivors, int(e.A))
	case watchdog.Finished:
		r.finished = true
	}
}

// notStarted is the Result of a worker that was stopped before it was started.
var notStarted = Result{Signal: syscall.SIGTERM, Stopped: true}

// started handles the start of a worker.
func (r *run) started(e watchdog.Record) {
	i, pid := e.Index, int(e.A)
	s, ago := &r.states[i], watchdog.Monotonic()-time.Duration(e.B)
	s.pid, s.startedAt = pid, time.Now().Add(-ago)
	if r.tree.Started != nil {
		r.calls.add(func() { r.tree.Started(i, pid) })
	}
}

// ended records the result of worker i unless it has one, and calls Tree.Ended when the end of its
// standard error has been read.
func (r *run) ended(i int, result Result) {
	s := &r.states[i]
	if s.ended {
		return
	}
	s.ended = true
	r.live--
	p, until := r.pumps[i], time.Now().Add(pumpWait)
	if p != nil {
		p.workerEnded()
	}
	r.calls.add(func() {
		if p != nil {
			result.Stderr = p.text(until)
		}
		result.GroupSignal = r.reports.groupSignal(s.startedAt, result)
		s.result = result
		if r.tree.Ended != nil {
			r.tree.Ended(i, result)
		}
	})
}
