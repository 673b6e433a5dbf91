package wrap

import (
	"slices"
	"syscall"
	"time"

	"rdzv/wrap/internal/watchdog"
)

// pairing brings together the signals of this process and the reports of the sentinel, in whatever order they come.
type pairing struct {
	ready   []Event   // to be yielded
	waiting []Event   // not reported yet, oldest first
	due     time.Time // when those that wait are given up
	asked   int       // answers that are to come
	reports []report  // not met by a signal yet, oldest first
}

// report is what the sentinel said, and when.
type report struct {
	watchdog.Report
	at time.Time
}

// signal takes in a signal to this process, on which so many sentinels have been asked. Without any it is for this process
// alone.
func (p *pairing) signal(sig syscall.Signal, now time.Time, asked int) {
	e := Event{Signal: sig, At: now}
	p.asked += asked
	p.reports = slices.DeleteFunc(p.reports, func(r report) bool { return now.Sub(r.at) > reportLife })
	i := slices.IndexFunc(p.reports, func(r report) bool { return syscall.Signal(r.Signal) == sig })
	switch {
	case i >= 0:
		p.ready = append(p.ready, shared(e, p.reports[i].Report))
		p.reports = slices.Delete(p.reports, i, i+1)
	case asked > 0:
		p.waiting = append(p.waiting, e)
		p.due = now.Add(answerWait)
	default:
		p.ready = append(p.ready, e)
	}
}

// report takes in a report.
func (p *pairing) report(r watchdog.Report, now time.Time) {
	i := slices.IndexFunc(p.waiting, func(e Event) bool { return int32(e.Signal) == r.Signal })
	if i < 0 {
		p.reports = append(p.reports, report{r, now})
		return
	}
	p.ready = append(p.ready, shared(p.waiting[i], r))
	p.waiting = slices.Delete(p.waiting, i, i+1)
}

// answered takes in that a sentinel has reported all that had reached it when it was asked.
func (p *pairing) answered(now time.Time) {
	if p.asked--; p.asked <= 0 {
		p.due = now.Add(shareWait)
	}
}

// deserted takes in that there is no sentinel any more.
func (p *pairing) deserted(now time.Time) {
	p.asked, p.due = 0, now
}

// expire gives up waiting for reports that are overdue.
func (p *pairing) expire(now time.Time) {
	if !now.Before(p.due) {
		p.ready = append(p.ready, p.waiting...)
		p.waiting = nil
	}
}

// codes of siginfo: above 0 the kernel sent the signal.
const fromProcess = 0

func shared(e Event, r watchdog.Report) Event {
	e.Shared = true
	e.Terminal = r.Code > fromProcess
	if !e.Terminal {
		e.Sender = int(r.PID)
	}
	return e
}
