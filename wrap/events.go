package wrap

import (
	"syscall"
	"time"

	"rdzv/wrap/internal/watchdog"
)

// take takes in what the watchdog tells.
func (r *run) take(e watchdog.Record) {
	switch e.Kind {
	case watchdog.Started:
		r.started(e)
	case watchdog.Refused:
		r.ended(e.Index, refused(r.tree.Workers[e.Index], syscall.Errno(e.A)))
	case watchdog.Skipped:
		r.ended(e.Index, skipped)
	case watchdog.Ended:
		result := Result{PID: r.states[e.Index].pid, Stopped: e.C == 1, Took: time.Duration(e.B)}
		result.fill(syscall.WaitStatus(e.A))
		r.ended(e.Index, result)
	case watchdog.Paused:
		r.paused(e.Index, syscall.Signal(e.A))
	case watchdog.Resumed:
		r.states[e.Index].paused = false
	case watchdog.Left:
		r.left = append(r.left, int(e.A))
	case watchdog.Gone:
		r.gone = true
	}
}

// skipped is the Result of a worker that was stopped before it was started.
var skipped = Result{Signal: syscall.SIGTERM, Stopped: true}

func (r *run) started(e watchdog.Record) {
	i, pid := e.Index, int(e.A)
	s, now, clock := &r.states[i], time.Now(), int64(watchdog.Monotonic())
	s.pid, s.began = pid, now.Add(time.Duration(e.B-clock))
	if r.tree.Started != nil {
		r.calls.add(func() { r.tree.Started(i, pid) })
	}
}

// ended notes the result of worker i, and lets the caller know as soon as its last words are in.
func (r *run) ended(i int, result Result) {
	s := &r.states[i]
	if s.ended {
		return
	}
	s.ended = true
	r.live--
	p, until := r.pumps[i], time.Now().Add(pumpWait)
	if p != nil {
		p.end()
	}
	r.calls.add(func() {
		if p != nil {
			result.Stderr = p.text(until)
		}
		result.Outside = r.outside(s.began, result)
		s.result = result
		if r.tree.Ended != nil {
			r.tree.Ended(i, result)
		}
	})
}
