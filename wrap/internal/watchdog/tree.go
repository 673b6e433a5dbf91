package watchdog

import (
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"rdzv/internal/procfs"
)

// phase is the state of the tree. It only increases.
type phase int

const (
	running  phase = iota // no order to end the tree; descendants of ended workers may run
	stopping              // SIGTERM was sent, the grace period runs
	dumping               // SIGABRT was sent to workers that catch it, which print their stacks
	killing               // SIGKILL is sent repeatedly
)

const (
	// DumpWait is how long workers may take to print their stacks after SIGABRT.
	DumpWait = 500 * time.Millisecond
	// KillWait is how long processes may take to die of SIGKILL before they are reported as
	// Survivors: they may belong to another user or hang in the kernel.
	KillWait = 3 * time.Second
)

// worker is the state of a running worker.
type worker struct {
	index     int // in the Spec
	pid       int
	startedAt time.Duration // Monotonic, before its start
	suspended bool          // stopped by a signal, as in job control
	signalled bool          // it has received a signal to end
	aborted   bool          // it has received SIGABRT
}

// watchdog is the state of this process. Both threads lock mu, see serve.go.
type watchdog struct {
	mu       sync.Mutex
	starting bool      // some workers have not been started yet
	workers  []*worker // those that run, in the order of their start
	sentinel sentinel
	sentTerm map[int]bool // orphans that have received SIGTERM
	phase    phase
	deadline time.Time // end of the phase
	scanned  time.Time // last search for orphans, or begin of the phase
}

// handle carries out one order of the agent.
func (w *watchdog) handle(r Record) {
	w.reap() // what ended before the order did not end because of it
	switch r.Kind {
	case Signal:
		for _, e := range w.workers {
			e.send(syscall.Signal(r.A))
		}
	case AlreadySignalled:
		w.markSignalled(time.Duration(r.A), syscall.Signal(r.B))
	case Stop:
		w.stop(time.Duration(r.A), r.B == 1)
	case DumpStacks:
		w.dumpStacks(true)
	case Kill:
		w.enter(killing, KillWait)
	case Query:
		w.sentinel.mark(QueryReply)
	}
}

// markSignalled marks the workers that have received s, a signal to end: those started before the
// time at. But at is when the agent received s, which was sent earlier. A worker that still runs
// although s would have killed it was started in between and has not received it.
func (w *watchdog) markSignalled(at time.Duration, s syscall.Signal) {
	for _, e := range w.workers {
		if e.startedAt >= at {
			continue
		}
		sets, err := procfs.ReadSignals(procfs.System, e.pid)
		dies := err == nil && !(sets.Caught | sets.Ignored | sets.Blocked).Has(s)
		e.signalled = e.signalled || !dies
	}
}

// enter begins phase p, which lasts at most d, unless the tree is in it or in a later one.
func (w *watchdog) enter(p phase, d time.Duration) {
	if p > w.phase {
		w.phase, w.scanned = p, time.Now()
		w.deadline = w.scanned.Add(d)
	}
}

// send sends s to the worker, which has not been reaped, so that its pid is still its own.
func (e *worker) send(s syscall.Signal) {
	_ = syscall.Kill(e.pid, s) // EPERM: the worker runs as another user
}

// reap handles the status of every child that has changed, and reports whether there is a child
// besides the sentinel. The sentinel has no exit signal, so that wait ignores it without __WALL
// (wait(2)): ECHILD proves that nothing of the tree is left, without reading /proc.
func (w *watchdog) reap() (left bool) {
	const options = syscall.WNOHANG | syscall.WUNTRACED | syscall.WCONTINUED
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, options, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			w.sentinel.reap()
			return false
		case pid <= 0:
			return true
		default:
			w.childChanged(pid, status)
		}
	}
}

// childChanged handles the status of a child.
func (w *watchdog) childChanged(pid int, status syscall.WaitStatus) {
	ended := status.Exited() || status.Signaled()
	at := slices.IndexFunc(w.workers, func(e *worker) bool { return e.pid == pid })
	if at < 0 {
		if ended {
			delete(w.sentTerm, pid)
		}
		return
	}
	e := w.workers[at]
	r := Record{Kind: Continued, Index: e.index}
	e.suspended = status.Stopped()
	switch {
	case ended:
		r.Kind, r.A, r.B = Ended, int64(status), int64(Monotonic()-e.startedAt)
		if e.signalled {
			r.C = 1
		} else {
			w.sentinel.mark(Barrier)
		}
		w.workers = slices.Delete(w.workers, at, at+1)
	case e.suspended:
		r.Kind, r.A = Suspended, int64(status.StopSignal())
	}
	tell(r)
}

// orphans returns the children that are neither workers nor the sentinel: descendants whose parents
// have ended. Without /proc it finds none.
func (w *watchdog) orphans() []int {
	pids, _ := procfs.Children(procfs.System, os.Getpid())
	return slices.DeleteFunc(pids, func(pid int) bool {
		isWorker := slices.ContainsFunc(w.workers, func(e *worker) bool { return e.pid == pid })
		return isWorker || pid == w.sentinel.pid
	})
}
