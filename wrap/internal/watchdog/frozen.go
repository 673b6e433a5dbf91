package watchdog

import (
	"slices"
	"syscall"
	"time"

	"rdzv/internal/procfs"
)

// A process that has received SIGSTOP and is not continued is frozen: it does nothing and does not
// end. A launcher waits for a frozen agent after all others have ended, and an agent does not learn
// from a frozen watchdog that its workers have ended. So each of the two kills the other one if it
// is stopped for too long.

// Stopped reports whether a process is stopped by a signal. One that a debugger has stopped is not:
// its state is 't'.
func Stopped(pid int) bool {
	p, err := procfs.Read(procfs.System, pid)
	return err == nil && p.State == 'T'
}

// freeze is what the watchdog knows about a frozen agent. It checks the agent five times per limit,
// because the kernel does not report a process that stops to its children.
type freeze struct {
	agent   int           // its pid
	limit   time.Duration // how long it may be frozen; 0 is for ever
	checks  int           // how many checks in succession have found that it is
	checked time.Time     // the last time
}

const checksPerLimit = 5

// untilCheck is how long after t the next check is due.
func (f *freeze) untilCheck(t time.Time) time.Duration {
	return f.checked.Add(f.limit / checksPerLimit).Sub(t)
}

// checkAgent kills the agent if it has been frozen for longer than its limit. The end of file on
// the socket then ends the tree.
func (w *watchdog) checkAgent(now time.Time) {
	f := &w.freeze
	if f.limit == 0 || f.untilCheck(now) > 0 || w.phase == stopping && w.lease.over() {
		return // the tree ends, and with it the agent: killFrozenAgent
	}
	f.checked = now
	if !f.frozen() || w.suspended() {
		f.checks = 0
		return
	}
	if f.checks++; f.checks > checksPerLimit { // none of them while this process was stopped
		_ = syscall.Kill(f.agent, syscall.SIGKILL)
	}
}

// frozen reports whether the agent is stopped. It has not ended: it is the parent of the holder, or
// if that has been killed of this process.
func (f *freeze) frozen() bool {
	parent := syscall.Getppid()
	if holder, err := procfs.Read(procfs.System, parent); err == nil && parent != f.agent {
		parent = holder.Parent
	}
	return parent == f.agent && Stopped(f.agent)
}

// suspended reports whether somebody has stopped the whole job of this node, to continue it later:
// its process group, with the sentinel, by SIGSTOP, or all workers (Ctrl-Z), after which the agent
// stops itself.
func (w *watchdog) suspended() bool {
	runs := func(e *worker) bool { return !e.suspended || w.lease.stopped[e.pid] != 0 }
	return w.sentinel.pid != 0 && Stopped(w.sentinel.pid) ||
		len(w.workers) > 0 && !slices.ContainsFunc(w.workers, runs)
}
