package wrap

import (
	"slices"
	"syscall"
	"time"
)

const (
	// shareWait is how long after a signal to this process the holder may receive it; then it was for
	// this process alone. Slurm and systemd signal one process after the other, and may be
	// interrupted for a while on a busy machine, as may the holder.
	shareWait = 100 * time.Millisecond
	// reportLife is how long a report waits for the signal to this process, whose threads may have
	// to wait for a processor. Without one the signal was sent to the holder alone, or the kernel has
	// merged two signals to this process.
	reportLife = time.Second
)

// pairing matches the signals that this process receives with those that a holder receives, in
// whichever order they come. Each signal has its own deadline, which later signals do not extend.
type pairing struct {
	ready   []Event // to be sent to Source.C
	pending []Event // without a report yet, oldest first
	reports []Event // by holders, without a signal to this process yet, oldest first
}

// signal adds a signal to this process.
func (p *pairing) signal(sig syscall.Signal, now time.Time) {
	p.reports = slices.DeleteFunc(p.reports, func(r Event) bool {
		return now.Sub(r.At) > reportLife
	})
	i := slices.IndexFunc(p.reports, func(r Event) bool { return r.Signal == sig })
	if i < 0 {
		p.pending = append(p.pending, Event{Signal: sig, At: now})
		return
	}
	p.reports = slices.Delete(p.reports, i, i+1)
	p.ready = append(p.ready, Event{Signal: sig, At: now, Shared: true})
}

// report adds the report that a holder received sig.
func (p *pairing) report(sig syscall.Signal, now time.Time) {
	i := slices.IndexFunc(p.pending, func(e Event) bool { return e.Signal == sig })
	if i < 0 {
		p.reports = append(p.reports, Event{Signal: sig, At: now})
		return
	}
	e := p.pending[i]
	e.Shared = true
	p.pending = slices.Delete(p.pending, i, i+1)
	p.ready = append(p.ready, e)
}

// expire takes signals whose reports are overdue for signals to this process alone.
func (p *pairing) expire(now time.Time) {
	for len(p.pending) > 0 && !now.Before(p.pending[0].At.Add(shareWait)) {
		p.ready = append(p.ready, p.pending[0])
		p.pending = p.pending[1:]
	}
}

// next returns when expire has to be called next; not ok if no signal is pending.
func (p *pairing) next() (due time.Time, ok bool) {
	if len(p.pending) == 0 {
		return due, false
	}
	return p.pending[0].At.Add(shareWait), true
}
