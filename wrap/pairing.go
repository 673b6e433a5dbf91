package wrap

import (
	"slices"
	"syscall"
	"time"
)

// Event is a signal that this process received.
type Event struct {
	Signal syscall.Signal
	// Shared says that the workers have received the signal too: it was sent to the whole process
	// group (by a terminal, a launcher's daemon, timeout(1), a shell's "kill %1") or to every
	// process of a task (Slurm, systemd), not to this process alone. To forward it would deliver it
	// twice.
	Shared bool
	// At is when this process received it.
	At time.Time
	// IfHandled, in Tree.Signals, withholds it from a worker that it would end, because the worker
	// does not catch, ignore or block it, or has not started yet.
	IfHandled bool
}

const (
	// replyWait bounds the wait for the sentinel's reply after a signal: the sentinel may be
	// stopped or dead.
	replyWait = time.Second
	// shareWait is how long after that reply the sentinel may still report the signal; then the
	// signal was for this process alone. The kernel signals all processes of a group in one go, the
	// sentinel before this process. Slurm and systemd signal one process after the other, and may
	// be interrupted for a while on a busy machine.
	shareWait = 100 * time.Millisecond
	// reportLife is how long a report waits for the signal to this process, whose threads may have
	// to wait for a processor as long as the sentinel. Without one the signal was sent to the
	// sentinel alone, or the kernel has merged two signals to this process. (A signal that is sent
	// to agent and sentinel separately, as by "pkill -f rdzv", counts as sent to the group.)
	reportLife = replyWait
)

// pairing matches the signals that this process receives with the reports of sentinels, in
// whichever order they come. Each signal has its own deadline, which later signals do not extend.
type pairing struct {
	ready   []Event   // to be sent to Source.C
	pending []pending // oldest first
	reports []Event   // by sentinels, without a signal to this process yet, oldest first
}

// pending is a signal that waits for a report, or for which a report has come, so that it is in
// ready, but not all replies of sentinels.
type pending struct {
	Event
	queried []int // pids of the watchdogs whose sentinels have not replied
	due     time.Time
}

// signal adds a signal to this process, about which the sentinels of the watchdogs in queried have
// been queried. Without any the signal is for this process alone.
func (p *pairing) signal(sig syscall.Signal, now time.Time, queried []int) {
	s := pending{Event: Event{Signal: sig, At: now}, queried: queried, due: now.Add(replyWait)}
	p.reports = slices.DeleteFunc(p.reports, func(r Event) bool {
		return now.Sub(r.At) > reportLife
	})
	i := slices.IndexFunc(p.reports, func(r Event) bool { return r.Signal == sig })
	switch {
	case i >= 0:
		p.reports = slices.Delete(p.reports, i, i+1)
		s.Shared = true
		p.ready = append(p.ready, s.Event)
	case len(queried) == 0:
		p.ready = append(p.ready, s.Event)
	}
	if len(queried) > 0 {
		p.pending = append(p.pending, s)
	}
}

// report adds the report that a sentinel received sig.
func (p *pairing) report(sig syscall.Signal, now time.Time) {
	i := slices.IndexFunc(p.pending, func(s pending) bool { return !s.Shared && s.Signal == sig })
	if i < 0 {
		p.reports = append(p.reports, Event{Signal: sig, At: now})
		return
	}
	s := &p.pending[i]
	s.Shared = true
	p.ready = append(p.ready, s.Event)
}

// replied adds the reply of the sentinel of a watchdog: it has reported all signals that it had
// received before the query. Replies come in the order of the queries.
func (p *pairing) replied(watchdog int, now time.Time) {
	for i := range p.pending {
		s := &p.pending[i]
		at := slices.Index(s.queried, watchdog)
		if at < 0 {
			continue
		}
		if s.queried = slices.Delete(s.queried, at, at+1); len(s.queried) == 0 {
			s.due = now.Add(shareWait)
		}
		return
	}
}

// expire takes signals whose reports are overdue for signals to this process alone.
func (p *pairing) expire(now time.Time) {
	p.pending = slices.DeleteFunc(p.pending, func(s pending) bool {
		over := !now.Before(s.due)
		if over && !s.Shared {
			p.ready = append(p.ready, s.Event)
		}
		return over
	})
}

// next returns when expire has to be called next; not ok if no signal is pending.
func (p *pairing) next() (due time.Time, ok bool) {
	for _, s := range p.pending {
		if !ok || s.due.Before(due) {
			due, ok = s.due, true
		}
	}
	return due, ok
}
