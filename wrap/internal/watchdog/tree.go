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
	dumping               // SIGABRT was announced, or sent, to workers that catch it
	killing               // SIGKILL is sent repeatedly
)

const (
	// AnnounceWait is how long the agent may take to announce the stacks of workers, for the case
	// that it hangs. Open MPI 5 leaves 125 ms after it.
	AnnounceWait = 100 * time.Millisecond
	// DumpWait is how long workers may take to print their stacks after SIGABRT.
	DumpWait = 500 * time.Millisecond
	// KillWait is how long processes may take to die of SIGKILL before they are reported as
	// Survivors: they may belong to another user or hang in the kernel.
	KillWait = 3 * time.Second
)

// watchdog is the state of this process. Both threads lock mu, see serve.go.
type watchdog struct {
	mu       sync.Mutex
	changed  *sync.Cond // the queue or workers
	queue    queue      // those that have not been started; empty unless the phase is running
	workers  []*worker  // those that run, in the order of their start
	sentinel sentinel
	freeze   freeze
	lease    lease
	sentTerm map[int]bool // orphans that have received SIGTERM
	inits    inits
	phase    phase
	deadline time.Time // end of the phase
	dumpAt   time.Time // when SIGABRT is sent at the latest, if it has been announced
	scanned  time.Time // last search for orphans, or begin of the phase
	outputs  outputs
	crash    Crash
	kept     chan struct{} // closed when the trace of an agent that has ended is kept; nil before
}

func newWatchdog() *watchdog {
	w := &watchdog{sentTerm: map[int]bool{}}
	w.changed = sync.NewCond(&w.mu)
	return w
}

// enter begins phase p, which lasts at most d, unless the tree is in it or in a later one. No more
// workers are started then.
func (w *watchdog) enter(p phase, d time.Duration) {
	if p > w.phase {
		w.skipAll()
		w.phase, w.scanned = p, time.Now()
		w.deadline = w.scanned.Add(d)
	}
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
		w.outputs.workerEnded(e.index)
	case !e.suspended:
		w.lease.continued()
	default:
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

// agent is the socket to the agent.
var agent = os.Stdin

// tell sends r to the agent. If the agent has died, serveAgent finds that out.
func tell(r Record) { _, _ = agent.Write(r.Bytes()) }
