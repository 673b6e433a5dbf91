package watchdog

import (
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"rdzv/internal/procfs"
)

// phase is where the tree stands; it only ever goes forward.
type phase int

const (
	running  phase = iota // no order to end yet; workers may all have ended, what they left behind lives on
	stopping              // SIGTERM is out, the grace time runs
	dumping               // SIGABRT is out to workers that catch it, their stacks are being written
	killing               // SIGKILL, again and again
)

// tick says how often a tree in phase p is looked at: it is told of the ends of children, but not that it has adopted one.
func (p phase) tick() time.Duration {
	if p == killing {
		return 2 * time.Millisecond
	}
	return 10 * time.Millisecond
}

// DumpWait is how long a worker may take to print its stacks after SIGABRT; KillWait is how long a process may take to
// die of SIGKILL (it may belong to another user, or hang in the kernel) before it is given up.
const (
	DumpWait = 500 * time.Millisecond
	KillWait = 3 * time.Second
)

// worker is one started program.
type worker struct {
	pid    int           // 0 when it does not live
	begun  time.Duration // Monotonic, before its start
	paused bool
	told   bool // it has had a signal to stop
	dumped bool // it has had SIGABRT
}

// watch is the state of the watchdog.
type watch struct {
	mu        sync.Mutex
	starting  bool // not all workers are started, or refused
	workers   []worker
	byPID     map[int]int // live workers
	live      int
	sentinel  int          // its pid, 0 if there is none
	dismissed time.Time    // when it was told to leave
	told      map[int]bool // adopted children that have had SIGTERM
	phase     phase
	deadline  time.Time // of the phase
	looked    time.Time // when the tree was looked at last, or the phase began
}

// obey carries out one order of the agent.
func (w *watch) obey(r Record) {
	// First what has ended by itself: it must not pass for stopped.
	w.reap()
	switch r.Kind {
	case Signal:
		for i := range w.workers {
			if w.workers[i].pid != 0 {
				w.send(i, syscall.Signal(r.A))
			}
		}
	case Spare:
		w.spare(time.Duration(r.A), syscall.Signal(r.B))
	case Stop:
		w.stop(time.Duration(r.A), r.B == 1)
	case Deaf:
		w.dumpStacks(true)
	case Kill:
		w.enter(killing, KillWait)
	case Ask:
		w.report(Answer)
	}
}

// spare is for workers that have had s, a signal to stop, at the time at: those that were there by then. But at is when the
// agent saw it, and it was on its way before: who lives and would have died of it came meanwhile.
func (w *watch) spare(at time.Duration, s syscall.Signal) {
	for i := range w.workers {
		if e := &w.workers[i]; e.pid != 0 && e.begun < at && !diesOf(e.pid, s) {
			e.told = true
		}
	}
}

// diesOf reports whether pid does nothing about s: it neither catches nor ignores it, nor holds it back to take it later.
func diesOf(pid int, s syscall.Signal) bool {
	sets, err := procfs.ReadSignals(procfs.System, pid)
	return err == nil && !(sets.Caught | sets.Ignored | sets.Blocked).Has(s)
}

func (w *watch) enter(p phase, d time.Duration) {
	if p > w.phase {
		w.phase, w.looked = p, time.Now()
		w.deadline = w.looked.Add(d)
	}
}

// send signals worker i. It is not reaped yet, so its pid is its own.
func (w *watch) send(i int, s syscall.Signal) {
	_ = syscall.Kill(w.workers[i].pid, s) // EPERM: a worker that has become another user
}

// reap takes in the status of every child that has changed, and reports whether there is any besides the sentinel. That
// one is a child which wait does not know of unless it is asked for those too (__WALL): so ECHILD is the proof that nothing
// is left of the tree, and /proc need not be looked through.
func (w *watch) reap() (left bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED|syscall.WCONTINUED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			w.reapSentinel()
			return false
		case pid <= 0:
			return true
		default:
			w.saw(pid, status)
		}
	}
}

// saw takes in that the child pid has changed.
func (w *watch) saw(pid int, status syscall.WaitStatus) {
	i, isWorker := w.byPID[pid]
	over := status.Exited() || status.Signaled()
	switch {
	case isWorker && over:
		w.ended(i, status)
	case isWorker && status.Stopped():
		w.workers[i].paused = true
		w.tell(Record{Kind: Paused, Index: i, A: int64(status.StopSignal())})
	case isWorker:
		w.workers[i].paused = false
		w.tell(Record{Kind: Resumed, Index: i})
	case over:
		delete(w.told, pid)
	}
}

func (w *watch) ended(i int, status syscall.WaitStatus) {
	e := &w.workers[i]
	r := Record{Kind: Ended, Index: i, A: int64(status), B: int64(Monotonic() - e.begun)}
	if e.told {
		r.C = 1
	} else {
		w.report(Barrier)
	}
	delete(w.byPID, e.pid)
	e.pid = 0
	w.live--
	w.tell(r)
}

// orphans returns the children that are neither workers nor the sentinel: what workers left behind.
func (w *watch) orphans() []int {
	pids, _ := procfs.Children(procfs.System, os.Getpid()) // without /proc the workers are all that can be found
	return slices.DeleteFunc(pids, func(pid int) bool {
		_, isWorker := w.byPID[pid]
		return isWorker || pid == w.sentinel
	})
}
