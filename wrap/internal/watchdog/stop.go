package watchdog

import (
	"syscall"
	"time"
)

// stop begins to end the tree. Running workers receive SIGTERM, or with stacks SIGABRT if they
// catch it; descendants that ended workers have left receive SIGTERM. After grace, workers that
// catch SIGABRT receive it once that has been announced, and after another DumpWait everything is
// killed. With a grace of 0 everything is killed at once, without that SIGABRT.
func (w *watchdog) stop(grace time.Duration, stacks bool) {
	if w.phase != running {
		return
	}
	if w.held() { // it would have to run to end by itself
		w.enter(killing, KillWait)
		return
	}
	w.enter(stopping, grace)
	for _, e := range w.workers {
		switch {
		case e.signalled:
			e.delivered = true
			e.wake()
		case stacks && e.prepareDump(false):
			e.end(syscall.SIGABRT)
		default:
			e.end(syscall.SIGTERM)
		}
	}
	if grace == 0 {
		w.enter(killing, KillWait)
	}
}

// announceDump tells the agent which workers are about to receive SIGABRT: those that run and catch
// it, or with ignoringTerm those of them that ignore SIGTERM. They receive it when the agent has
// answered, at most AnnounceWait later. It reports whether there are such workers.
func (w *watchdog) announceDump(ignoringTerm bool) bool {
	var chosen []*worker
	for _, e := range w.workers {
		if e.prepareDump(ignoringTerm) {
			e.announced, chosen = true, append(chosen, e)
		}
	}
	for i, e := range chosen {
		r := Record{Kind: Dumping, Index: e.index, B: int64(len(chosen) - 1 - i)}
		if e.ignoresTerm() {
			r.A = 1
		}
		tell(r)
	}
	if len(chosen) > 0 && w.dumpAt.IsZero() {
		w.dumpAt = time.Now().Add(AnnounceWait)
	}
	return !w.dumpAt.IsZero()
}

// dumpStacks sends SIGABRT to the workers for which it has been announced.
func (w *watchdog) dumpStacks() {
	w.dumpAt = time.Time{}
	for _, e := range w.workers {
		if e.announced {
			e.announced = false
			e.end(syscall.SIGABRT)
		}
	}
	if w.phase == dumping {
		w.deadline = time.Now().Add(DumpWait)
	}
}

// advance does what the phase requires at the time now and reports whether the watchdog is done.
// While workers run it searches for orphans, which reads /proc, only with scan.
func (w *watchdog) advance(now time.Time, scan bool) (done bool) {
	left := w.reap()
	switch {
	case w.phase == running || left && len(w.workers) > 0 && !scan:
		return false
	case !left:
		return w.sentinel.end(now)
	}
	orphans, late := w.orphans(), !now.Before(w.deadline)
	switch {
	case w.phase == stopping && !late:
		for _, pid := range orphans { // their children receive it once they are orphans themselves
			if !w.sentTerm[pid] {
				w.sentTerm[pid] = true
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
		}
		w.stopInits(now, orphans)
	case w.phase == stopping && w.announceDump(false):
		w.enter(dumping, AnnounceWait+DumpWait) // dumpStacks changes that
	case w.phase == killing && late:
		w.reportSurvivors(orphans)
		return true
	case w.phase == killing || late:
		w.enter(killing, KillWait)
		w.killAll(orphans)
	}
	return false
}

// killAll kills all children. Only this process reaps them, so their pids cannot belong to other
// processes. When a child dies, its own children become children of this process: each call kills
// one generation of the tree.
func (w *watchdog) killAll(orphans []int) {
	for _, e := range w.workers {
		e.signalled = true
		e.send(syscall.SIGKILL)
	}
	for _, pid := range orphans {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// reportSurvivors reports the processes that have not died of SIGKILL. The agent will adopt them.
func (w *watchdog) reportSurvivors(orphans []int) {
	w.sentinel.kill()
	for _, e := range w.workers {
		orphans = append(orphans, e.pid)
	}
	for _, pid := range orphans {
		tell(Record{Kind: Survivor, A: int64(pid)})
	}
}
