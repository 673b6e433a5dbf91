package wrap

import (
	"context"
	"errors"
	"syscall"
	"time"

	"rdzv/wrap/internal/holder"
)

// Stop, as the cause of the end of Run's ctx, says how the tree is to be stopped. Any other cause
// has the effect of the zero Stop.
type Stop struct {
	// Err is the reason; may be nil.
	Err error
	// Delivered is a signal to end that the workers have already received, not from Run; 0 is none.
	// Workers started before the time At receive no SIGTERM then, except those that still run
	// although Delivered would have killed them: they were started after it was sent. Those that run
	// after half of Tree.Grace receive it nevertheless. A zero At is now.
	Delivered syscall.Signal
	At        time.Time
	// Groups sends SIGTERM to the process groups of the workers, with Launched, as a launcher would
	// that knew the workers.
	Groups bool
	// DumpStacks sends SIGABRT instead of SIGTERM to workers that catch it, as Python's
	// faulthandler does: they print their stacks, for which they have Tree.Grace, and die.
	DumpStacks bool
}

// Error is the text of Err, or "stopped".
func (s *Stop) Error() string {
	if s.Err == nil {
		return "stopped"
	}
	return s.Err.Error()
}

// Unwrap returns Err.
func (s *Stop) Unwrap() error { return s.Err }

// phase is the state of the tree. It only increases.
type phase int

const (
	atWork   phase = iota // no order to end the tree; descendants of ended workers may run
	stopping              // SIGTERM was sent, the grace period runs
	dumping               // SIGABRT was announced, or sent, to workers that catch it
	killing               // the holder sends SIGKILL repeatedly
)

const (
	// announceWait is how long Tree.Dumping may take to announce the stacks of workers, for the case
	// that it hangs. Open MPI 5 leaves 150 ms after it.
	announceWait = 100 * time.Millisecond
	// dumpWait is how long workers may take to print their stacks after SIGABRT.
	dumpWait = 500 * time.Millisecond
)

// enter begins phase p, which lasts at most d, unless the tree is in it or in a later one. No more
// workers are started then. The holder has a limit for this phase and those that may follow: it may
// hang in the kernel, as when the program of a worker is on a file system that does not respond.
func (r *run) enter(p phase, d time.Duration) {
	if p <= r.phase {
		return
	}
	r.skipAll()
	r.phase, r.scanned = p, time.Now()
	r.deadline = r.scanned.Add(d)
	limit := d + lateMargin
	switch p {
	case stopping:
		limit += announceWait + dumpWait + holder.KillWait
	case dumping:
		limit += holder.KillWait
	}
	r.late = time.After(limit)
	kind := holder.Finish
	if p == killing {
		kind = holder.Kill
	}
	r.holder.order(holder.Record{Kind: kind})
}

// stop begins to end the tree as the cause of ctx's end says, if ctx has ended.
func (r *run) stop(ctx context.Context) {
	s, ok := errors.AsType[*Stop](context.Cause(ctx))
	if !ok {
		s = &Stop{}
	}
	r.endGroups = s.Groups
	r.endTree(r.tree.Grace, s)
}

// endTree begins to end the tree. Running workers receive SIGTERM, or SIGABRT if they catch it;
// descendants that ended workers have left receive SIGTERM. After grace, workers that catch SIGABRT
// receive it once that has been announced, and after another dumpWait everything is killed. With a
// grace of 0 everything is killed at once, without that SIGABRT.
func (r *run) endTree(grace time.Duration, how *Stop) {
	if r.phase != atWork {
		return
	}
	if r.lease.stopped != nil { // it would have to run to end by itself
		r.enter(killing, holder.KillWait)
		return
	}
	r.enter(stopping, grace)
	r.dumpTerm = how.DumpStacks
	for i := range r.states {
		s := &r.states[i]
		switch {
		case !s.runs():
		case how.reached(s):
			s.delivered, r.remindAt = true, time.Now().Add(grace/2)
			r.wake(s)
		default:
			r.end(s, s.endSignal(r.dumpTerm))
		}
	}
	if grace == 0 {
		r.enter(killing, holder.KillWait)
	}
}

// reached tells whether the worker has received a signal to end. At is when this process received
// it, which was sent earlier: a worker that still runs although it would have killed it was started
// in between.
func (s *Stop) reached(w *state) bool {
	before := s.At.IsZero() || w.startedAt.Before(s.At)
	return w.signalled || s.Delivered != 0 && before && !w.diesOf(s.Delivered)
}

// remind sends SIGTERM to the workers that have received another signal and have not ended.
func (r *run) remind(now time.Time) {
	if r.remindAt.IsZero() || now.Before(r.remindAt) {
		return
	}
	r.remindAt = time.Time{}
	for i := range r.states {
		if s := &r.states[i]; s.delivered && !s.signalled {
			r.end(s, syscall.SIGTERM)
		}
	}
}

// announceDump calls Tree.Dumping for the workers that are about to receive SIGABRT: those that run
// and catch it, or with ignoringTerm those of them that ignore SIGTERM. They receive it when it has
// returned, at most announceWait later. It reports whether there are such workers.
func (r *run) announceDump(ignoringTerm bool) bool {
	var dumps []Dump
	for i := range r.states {
		if s := &r.states[i]; s.prepareDump(ignoringTerm) {
			s.announced = true
			dumps = append(dumps, Dump{Worker: i, IgnoresTerm: s.ignoresTerm()})
		}
	}
	if len(dumps) > 0 {
		if r.dumpAt.IsZero() {
			r.dumpAt = time.Now().Add(announceWait)
		}
		r.calls <- func() {
			if r.tree.Dumping != nil {
				r.tree.Dumping(dumps)
			}
			r.announced <- struct{}{}
		}
	}
	return !r.dumpAt.IsZero()
}

// dumpStacks sends SIGABRT to the workers for which it has been announced.
func (r *run) dumpStacks() {
	r.dumpAt = time.Time{}
	for i := range r.states {
		if s := &r.states[i]; s.announced {
			s.announced = false
			r.end(s, syscall.SIGABRT)
		}
	}
	if r.phase == dumping {
		r.deadline = time.Now().Add(dumpWait)
	}
}

// advance does what the phase requires at the time now. While workers run it searches for orphans,
// which reads /proc, only with scan.
func (r *run) advance(now time.Time, scan bool) {
	if r.phase == atWork || r.phase == killing || r.finished || r.running > 0 && !scan ||
		r.queue.ordered > 0 { // a worker would look like an orphan
		return
	}
	r.remind(now)
	switch late := !now.Before(r.deadline); {
	case r.phase == stopping && !late:
		orphans := r.holder.orphans(r.states)
		for _, pid := range orphans { // their children receive it once they are orphans themselves
			if !r.sentTerm[pid] {
				r.sentTerm[pid] = true
				r.holder.signal(pid, syscall.SIGTERM, 0)
			}
		}
		r.inits.stop(now, r.states, orphans)
	case r.phase == stopping && r.announceDump(false):
		r.enter(dumping, announceWait+dumpWait) // dumpStacks changes that
	case late:
		r.enter(killing, holder.KillWait)
	}
}

// orphans are the children of the holder that are no workers: descendants whose parents have ended.
// Without /proc there are none.
func (c *client) orphans(states []state) (list []int) {
	workers := map[int]bool{}
	for i := range states {
		if s := &states[i]; s.runs() {
			workers[s.pid] = true
		}
	}
	for _, pid := range c.children() {
		if !workers[pid] {
			list = append(list, pid)
		}
	}
	return list
}
