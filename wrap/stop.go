package wrap

import (
	"syscall"
	"time"
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
	killing               // SIGKILL is sent repeatedly
)

const (
	// announceWait is how long Tree.Dumping may take to announce the stacks of workers, for the case
	// that it hangs. Open MPI 5 leaves 150 ms after it.
	announceWait = 100 * time.Millisecond
	// dumpWait is how long workers may take to print their stacks after SIGABRT.
	dumpWait = 500 * time.Millisecond
)

// enter begins phase p, which lasts at most d, unless the tree is in it or in a later one. No more
// workers are started then.
func (a *attempt) enter(p phase, d time.Duration) {
	if p <= a.phase {
		return
	}
	a.phase, a.scanned = p, time.Now()
	a.deadline = a.scanned.Add(d)
	a.skipAll()
}

// kill begins to kill everything.
func (a *attempt) kill() { a.enter(killing, killWait) }

// stop begins to end the tree.
func (a *attempt) stop(how *Stop) {
	a.endGroups = how.Groups
	a.endTree(a.tree.Grace, how)
}

// endTree begins to end the tree. Running workers receive SIGTERM, or SIGABRT if they catch it;
// descendants that ended workers have left receive SIGTERM. After grace, workers that catch SIGABRT
// receive it once that has been announced, and after another dumpWait everything is killed. With a
// grace of 0 everything is killed at once, without that SIGABRT.
func (a *attempt) endTree(grace time.Duration, how *Stop) {
	if a.phase != atWork {
		return
	}
	if a.lease.stopped != nil { // it would have to run to end by itself
		a.kill()
		return
	}
	a.enter(stopping, grace)
	a.dumpTerm = how.DumpStacks
	for i := range a.states {
		s := &a.states[i]
		switch {
		case !s.runs():
		case how.reached(s):
			s.delivered, a.remindAt = true, time.Now().Add(grace/2)
			a.wake(s)
		default:
			a.end(s, s.endSignal(a.dumpTerm))
		}
	}
	if grace == 0 {
		a.kill()
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
func (a *attempt) remind(now time.Time) {
	if a.remindAt.IsZero() || now.Before(a.remindAt) {
		return
	}
	a.remindAt = time.Time{}
	for i := range a.states {
		if s := &a.states[i]; s.delivered && !s.signalled {
			a.end(s, syscall.SIGTERM)
		}
	}
}

// announceDump has Tree.Dumping called for the workers that are about to receive SIGABRT: those
// that run and catch it, or with ignoringTerm those of them that ignore SIGTERM. They receive it
// when it has returned, at most announceWait later. It reports whether there are such workers.
func (a *attempt) announceDump(ignoringTerm bool) bool {
	var dumps []Dump
	for i := range a.states {
		if s := &a.states[i]; s.prepareDump(ignoringTerm) {
			s.announced = true
			dumps = append(dumps, Dump{Worker: i, IgnoresTerm: s.ignoresTerm()})
		}
	}
	if len(dumps) > 0 {
		if a.dumpAt.IsZero() {
			a.dumpAt = time.Now().Add(announceWait)
		}
		a.report(dumpsFollow, dumps)
	}
	return !a.dumpAt.IsZero()
}

// dumpStacks sends SIGABRT to the workers for which it has been announced.
func (a *attempt) dumpStacks() {
	a.dumpAt = time.Time{}
	for i := range a.states {
		if s := &a.states[i]; s.announced {
			s.announced = false
			a.end(s, syscall.SIGABRT)
		}
	}
	if a.phase == dumping {
		a.deadline = time.Now().Add(dumpWait)
	}
}

// advance does what the phase requires at the time now. While workers run it searches for orphans,
// which reads /proc, only with scan.
func (a *attempt) advance(now time.Time, scan bool) {
	if a.phase == atWork || a.phase == killing || a.finished || a.running > 0 && !scan ||
		a.queue.starts && now.Before(a.deadline) { // a worker would look like an orphan
		return
	}
	a.remind(now)
	switch late := !now.Before(a.deadline); {
	case a.phase == stopping && !late:
		orphans := a.orphans()
		for _, pid := range orphans { // their children receive it once they are orphans themselves
			if !a.sentTerm[pid] {
				a.sentTerm[pid] = true
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
		}
		a.inits.stop(now, a, orphans)
	case a.phase == stopping && a.announceDump(false):
		a.enter(dumping, announceWait+dumpWait) // dumpStacks changes that
	case late:
		a.kill()
	}
}

// orphans are the children of the runner that are no workers: descendants whose parents have ended.
func (a *attempt) orphans() (list []int) {
	for _, pid := range ownChildren() {
		if a.find(pid) == nil {
			list = append(list, pid)
		}
	}
	return list
}
