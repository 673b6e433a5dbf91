package watchdog

import (
	"maps"
	"slices"
	"syscall"
	"time"
)

// stop begins to end the tree: the workers get SIGTERM, or SIGABRT if stacks is set and they catch it; what ended
// workers have left behind gets SIGTERM as well. grace later all that lives is killed; if grace is 0, right away, without
// the SIGABRT that precedes it otherwise.
func (w *watch) stop(grace time.Duration, stacks bool) {
	if w.phase != running {
		return
	}
	w.enter(stopping, grace)
	for i := range w.workers {
		e := &w.workers[i]
		if e.pid == 0 {
			continue
		}
		if !e.told && !(stacks && w.dump(i, false)) {
			w.send(i, syscall.SIGTERM)
		}
		e.told = true
		w.wake(i)
	}
	if grace == 0 {
		w.enter(killing, KillWait)
	}
}

// wake continues worker i if it is stopped: it could not act on its signal.
func (w *watch) wake(i int) {
	if w.workers[i].paused {
		w.send(i, syscall.SIGCONT)
	}
}

// advance does what the phase asks for at now, and reports whether nothing is left to do. look has it look for what the
// workers have started while some of these still live, which is a matter of /proc.
func (w *watch) advance(now time.Time, look bool) (over bool) {
	left := w.reap()
	switch {
	case w.phase == running || left && w.live > 0 && !look:
		return false
	case !left:
		if w.dismiss(now) {
			w.tell(Record{Kind: Gone})
			return true
		}
		return false
	}
	orphans, late := w.orphans(), !now.Before(w.deadline)
	switch {
	case w.phase == stopping && !late:
		for _, pid := range orphans { // theirs get it when they are adopted in turn
			if !w.told[pid] {
				w.told[pid] = true
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
		}
	case w.phase == stopping && w.dumpStacks(false):
		w.enter(dumping, DumpWait)
	case w.phase == killing && late:
		w.giveUp(orphans)
		return true
	case w.phase == killing || late:
		w.enter(killing, KillWait)
		w.killAll(orphans)
	}
	return false
}

// killAll kills the children of this process, none of which can have been reaped by another: their pids are their own.
// Their children become ours the moment they die, so the tree falls from the top down, a generation a round.
func (w *watch) killAll(orphans []int) {
	for i := range w.workers {
		if w.workers[i].pid != 0 {
			w.workers[i].told = true
			w.send(i, syscall.SIGKILL)
		}
	}
	for _, pid := range orphans {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// giveUp names what has survived SIGKILL; the agent adopts it.
func (w *watch) giveUp(orphans []int) {
	if w.sentinel != 0 {
		w.withdraw()
		_ = syscall.Kill(w.sentinel, syscall.SIGKILL)
		_, _ = syscall.Wait4(w.sentinel, nil, syscall.WALL, nil)
	}
	for _, pid := range slices.AppendSeq(orphans, maps.Keys(w.byPID)) {
		w.tell(Record{Kind: Left, A: int64(pid)})
	}
	w.tell(Record{Kind: Gone})
}
