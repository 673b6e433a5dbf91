package watchdog

import (
	"maps"
	"slices"
	"syscall"
	"time"
)

// stop begins to end the tree. Running workers receive SIGTERM, or with stacks SIGABRT if they
// catch it; descendants that ended workers have left receive SIGTERM. After grace, workers that
// catch SIGABRT receive it, and after another DumpWait everything is killed. With a grace of 0
// everything is killed at once, without that SIGABRT.
func (w *watchdog) stop(grace time.Duration, stacks bool) {
	if w.phase != running {
		return
	}
	w.enter(stopping, grace)
	for i := range w.workers {
		e := &w.workers[i]
		if e.pid == 0 {
			continue
		}
		if !e.signalled && !(stacks && w.abort(i, false)) {
			w.send(i, syscall.SIGTERM)
		}
		e.signalled = true
		w.wake(i)
	}
	if grace == 0 {
		w.enter(killing, KillWait)
	}
}

// wake continues worker i if it is suspended, so that it can handle its signal.
func (w *watchdog) wake(i int) {
	if w.workers[i].suspended {
		w.send(i, syscall.SIGCONT)
	}
}

// advance does what the phase requires at the time now and reports whether the watchdog is done.
// While workers run it searches for orphans, which reads /proc, only with scan.
func (w *watchdog) advance(now time.Time, scan bool) (done bool) {
	left := w.reap()
	switch {
	case w.phase == running || left && w.live > 0 && !scan:
		return false
	case !left:
		if w.endSentinel(now) {
			w.tell(Record{Kind: Finished})
			return true
		}
		return false
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
	case w.phase == stopping && w.dumpStacks(false):
		w.enter(dumping, DumpWait)
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
	for i := range w.workers {
		if w.workers[i].pid != 0 {
			w.workers[i].signalled = true
			w.send(i, syscall.SIGKILL)
		}
	}
	for _, pid := range orphans {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// reportSurvivors reports the processes that have not died of SIGKILL. The agent will adopt them.
func (w *watchdog) reportSurvivors(orphans []int) {
	if w.sentinel != 0 {
		w.moveSentinel()
		_ = syscall.Kill(w.sentinel, syscall.SIGKILL)
		_, _ = syscall.Wait4(w.sentinel, nil, syscall.WALL, nil)
	}
	for _, pid := range slices.AppendSeq(orphans, maps.Keys(w.byPID)) {
		w.tell(Record{Kind: Survivor, A: int64(pid)})
	}
	w.tell(Record{Kind: Finished})
}
