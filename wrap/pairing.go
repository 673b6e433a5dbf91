package wrap

import (
	"slices"
	"syscall"
	"time"
)

// pairing brings together the signals of this process and the reports of the sentinels, in whatever
// order they come. Each signal has a deadline of its own: others that follow do not delay it.
type pairing struct {
	ready   []Event   // to be yielded
	pending []pending // oldest first
	reports []report  // not met by a signal yet, oldest first
}

// pending is a signal that waits for a report, or that was reported, and thus yielded, before all
// sentinels answered.
type pending struct {
	Event
	asked []int // watchdogs whose sentinels have not answered yet
	due   time.Time
}

// report is a signal that a sentinel got, and when it said so.
type report struct {
	signal syscall.Signal
	at     time.Time
}

// signal takes in a signal to this process, on which the sentinels of these watchdogs have been
// asked. Without any it is for this process alone.
func (p *pairing) signal(sig syscall.Signal, now time.Time, asked []int) {
	s := pending{Event: Event{Signal: sig, At: now}, asked: asked, due: now.Add(answerWait)}
	p.reports = slices.DeleteFunc(p.reports, func(r report) bool { return now.Sub(r.at) > reportLife })
	i := slices.IndexFunc(p.reports, func(r report) bool { return r.signal == sig })
	switch {
	case i >= 0:
		p.reports = slices.Delete(p.reports, i, i+1)
		s.Shared = true
		p.ready = append(p.ready, s.Event)
	case len(asked) == 0:
		p.ready = append(p.ready, s.Event)
	}
	if len(asked) > 0 {
		p.pending = append(p.pending, s)
	}
}

// report takes in that a sentinel got sig.
func (p *pairing) report(sig syscall.Signal, now time.Time) {
	i := slices.IndexFunc(p.pending, func(s pending) bool { return !s.Shared && s.Signal == sig })
	if i < 0 {
		p.reports = append(p.reports, report{sig, now})
		return
	}
	s := &p.pending[i]
	s.Shared = true
	p.ready = append(p.ready, s.Event)
}

// answered takes in that the sentinel of a watchdog has reported all that had reached it when it
// was asked. It answers in the order in which it is asked.
func (p *pairing) answered(dog int, now time.Time) {
	for i := range p.pending {
		s := &p.pending[i]
		at := slices.Index(s.asked, dog)
		if at < 0 {
			continue
		}
		if s.asked = slices.Delete(s.asked, at, at+1); len(s.asked) == 0 {
			s.due = now.Add(shareWait)
		}
		return
	}
}

// deserted takes in that there is no sentinel any more.
func (p *pairing) deserted(now time.Time) {
	for i := range p.pending {
		p.pending[i].due = now
	}
}

// expire gives up waiting for reports that are overdue.
func (p *pairing) expire(now time.Time) {
	p.pending = slices.DeleteFunc(p.pending, func(s pending) bool {
		over := !now.Before(s.due)
		if over && !s.Shared {
			p.ready = append(p.ready, s.Event)
		}
		return over
	})
}

// next returns when expire is to be called next, if ever.
func (p *pairing) next() (due time.Time, ok bool) {
	for _, s := range p.pending {
		if !ok || s.due.Before(due) {
			due, ok = s.due, true
		}
	}
	return due, ok
}
