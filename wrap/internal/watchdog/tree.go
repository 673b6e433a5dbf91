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

// scanInterval is how often phase p searches for orphans: the kernel reports the end of a child but
// not that this process has adopted one.
func (p phase) scanInterval() time.Duration {
	if p == killing {
		return 2 * time.Millisecond
	}
	return 10 * time.Millisecond
}

const (
	// DumpWait is how long workers may take to print their stacks after SIGABRT.
	DumpWait = 500 * time.Millisecond
	// KillWait is how long processes may take to die of SIGKILL before they are reported as
	// Survivors: they may belong to another user or hang in the kernel.
	KillWait = 3 * time.Second
)

// worker is the state of one worker.
type worker struct {
	pid       int           // 0 unless it runs
	startedAt time.Duration // Monotonic, before its start
	suspended bool          // stopped by a signal, as in job control
	signalled bool          // it has received a signal to end
	aborted   bool          // it has received SIGABRT
}

// watchdog is the state of this process. Both threads lock mu, see serve.go.
type watchdog struct {
	mu       sync.Mutex
	starting bool // some workers have not been started yet
	workers  []worker
	byPID    map[int]int  // index of each running worker
	live     int          // number of running workers
	sentinel int          // its pid, 0 if there is none
	exitSent time.Time    // when exitSentinel was sent; zero before
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
		for i := range w.workers {
			if w.workers[i].pid != 0 {
				w.send(i, syscall.Signal(r.A))
			}
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
		w.mark(QueryReply)
	}
}

// markSignalled marks the workers that have received s, a signal to end: those started before the
// time at. But at is when the agent received s, which was sent earlier. A worker that still runs
// although s would have killed it was started in between and has not received it.
func (w *watchdog) markSignalled(at time.Duration, s syscall.Signal) {
	for i := range w.workers {
		if e := &w.workers[i]; e.pid != 0 && e.startedAt < at && !diesOf(e.pid, s) {
			e.signalled = true
		}
	}
}

// diesOf reports whether s kills pid: it neither catches, nor ignores, nor blocks s.
func diesOf(pid int, s syscall.Signal) bool {
	sets, err := procfs.ReadSignals(procfs.System, pid)
	return err == nil && !(sets.Caught | sets.Ignored | sets.Blocked).Has(s)
}

// enter begins phase p, which lasts at most d, unless the tree is in it or in a later one.
func (w *watchdog) enter(p phase, d time.Duration) {
	if p > w.phase {
		w.phase, w.scanned = p, time.Now()
		w.deadline = w.scanned.Add(d)
	}
}

// send sends s to worker i, which has not been reaped, so that its pid is still its own.
func (w *watchdog) send(i int, s syscall.Signal) {
	_ = syscall.Kill(w.workers[i].pid, s) // EPERM: the worker runs as another user
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
			w.reapSentinel()
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
	i, isWorker := w.byPID[pid]
	ended := status.Exited() || status.Signaled()
	switch {
	case isWorker && ended:
		w.workerEnded(i, status)
	case isWorker && status.Stopped():
		w.workers[i].suspended = true
		w.tell(Record{Kind: Suspended, Index: i, A: int64(status.StopSignal())})
	case isWorker:
		w.workers[i].suspended = false
		w.tell(Record{Kind: Continued, Index: i})
	case ended:
		delete(w.sentTerm, pid)
	}
}

func (w *watchdog) workerEnded(i int, status syscall.WaitStatus) {
	e := &w.workers[i]
	r := Record{Kind: Ended, Index: i, A: int64(status), B: int64(Monotonic() - e.startedAt)}
	if e.signalled {
		r.C = 1
	} else {
		w.mark(Barrier)
	}
	delete(w.byPID, e.pid)
	e.pid = 0
	w.live--
	w.tell(r)
}

// orphans returns the children that are neither workers nor the sentinel: descendants whose parents
// have ended. Without /proc it finds none.
func (w *watchdog) orphans() []int {
	pids, _ := procfs.Children(procfs.System, os.Getpid())
	return slices.DeleteFunc(pids, func(pid int) bool {
		_, isWorker := w.byPID[pid]
		return isWorker || pid == w.sentinel
	})
}
