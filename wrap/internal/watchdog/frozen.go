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
	if f.limit == 0 || f.untilCheck(now) > 0 {
		return
	}
	f.checked = now
	if syscall.Getppid() != f.agent || !Stopped(f.agent) || w.suspended() {
		f.checks = 0
		return
	}
	if f.checks++; f.checks > checksPerLimit { // none of them while this process was stopped
		_ = syscall.Kill(f.agent, syscall.SIGKILL) // as the parent of this process it has not ended
	}
}

// suspended reports whether somebody has stopped the whole job of this node, to continue it later:
// its process group, with the sentinel, by SIGSTOP, or all workers (Ctrl-Z), after which the agent
// stops itself.
func (w *watchdog) suspended() bool {
	runs := func(e *worker) bool { return !e.suspended }
	return w.sentinel.pid != 0 && Stopped(w.sentinel.pid) ||
		len(w.workers) > 0 && !slices.ContainsFunc(w.workers, runs)
}
