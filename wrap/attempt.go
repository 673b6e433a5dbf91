package wrap

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"rdzv/internal/procfs"
	"rdzv/wrap/internal/parent"
	"rdzv/wrap/internal/tee"
)

// attempt is a tree that a runner runs.
type attempt struct {
	*supervisor
	tree      *Tree
	files     []*os.File // those of the workers, until all have been started
	states    []state    // by worker
	outputs   outputs
	live      int  // number of workers that have not ended
	running   int  // of these, number of those that have started
	finished  bool // nothing of the tree is left but what does not die
	terminal  bool // the workers are in the process group of the agent, or of their task
	group     int  // that group
	endGroups bool // Stop.Groups

	queue    queue
	phase    phase
	deadline time.Time // end of the phase
	dumpTerm bool      // Stop.DumpStacks
	dumpAll  bool      // Tree.DumpStacks is closed
	dumpAt   time.Time // when SIGABRT is sent at the latest, if it has been announced
	remindAt time.Time // when those that have received another signal get SIGTERM; zero is never
	scanned  time.Time // last search for orphans, or begin of the phase
	sentTerm map[int]bool
	inits    inits
	lease    hold
	frozen   frozen
	killer   killer
	lastStop jobStop
	early    map[int]syscall.WaitStatus // of children that changed while a worker was being started
}

// state is the part of an attempt for one worker: where its output goes, and how far it has come.
type state struct {
	streams   [3]int // its descriptors
	ends      files  // those of them that are closed when it has been started
	tees      []*tee.Tee
	tail      *tee.Tail        // of stderr, or of both; nil without Worker.Output or Capture
	within    bool             // the agent has been told that what is shown ends within a line
	toldAt    time.Time        // when it was told something of the output
	reporting atomic.Bool      // that is about to be sent
	joined    bool             // the end that is kept is of both
	unread    error            // Result.Unread
	mu        *sync.Mutex      // for the next two
	logged    bool             // there is a log, and it has not been given up
	lost      error            // why some of its stdout was not shown, before drained[0] was closed
	drained   [2]chan struct{} // closed when all that the worker itself wrote to a stream was copied
	pid       int
	startedAt time.Time // shortly before its start; zero if it was not started
	ended     bool
	suspended bool // stopped by a signal
	byShell   bool // of job control
	delivered bool // it has received a signal to end, not from the runner
	signalled bool // the runner has sent it a signal to end
	prepared  bool // it has received SIGABRT, or is about to
	announced bool // it is about to receive SIGABRT
}

func (s *state) runs() bool { return !s.startedAt.IsZero() && !s.ended }

// newAttempt opens the outputs of the workers.
func (s *supervisor) newAttempt(t *Tree, agent int, files []*os.File) (a *attempt, err error) {
	n := len(t.Workers)
	a = &attempt{
		supervisor: s, tree: t, files: files, states: make([]state, n), live: n,
		sentTerm: map[int]bool{}, group: s.parentGroup(), terminal: t.sameGroup(s.parent),
		frozen: frozen{limit: t.FrozenLimit, pids: s.watched(agent)},
	}
	a.outputs = outputs{
		attempt: a, screens: map[*os.File]*tee.Screen{}, changed: make(chan struct{}, 1),
	}
	for i := range a.states {
		a.states[i].mu = new(sync.Mutex)
		a.queue.startAt = append(a.queue.startAt, t.Workers[i].StartAt)
	}
	for i := range a.states {
		if err := a.outputs.open(i); err != nil {
			a.outputs.close()
			for i := range a.states {
				a.states[i].ends.close()
			}
			return nil, err
		}
	}
	return a, nil
}

// step does what the time and the phase require. For scan see advance.
func (a *attempt) step(scan bool) {
	if scan {
		a.scanned = time.Now()
	}
	now := time.Now()
	if !a.dumpAt.IsZero() && !now.Before(a.dumpAt) {
		a.dumpStacks()
	}
	if a.live == 0 && !a.tree.Linger && a.phase == atWork {
		a.stop(&Stop{})
	}
	a.checkLease()
	a.checkFrozen()
	a.advance(now, scan)
	if !a.finished {
		a.outputs.tell(now)
	}
	a.startNext()
	a.endIfEmpty()
}

// endIfEmpty finishes when nothing is left, and kills what is in the last phase.
func (a *attempt) endIfEmpty() {
	if a.finished || a.phase == atWork {
		return
	}
	if a.children.none && !a.queue.starts {
		a.finish(nil)
		return
	}
	if a.phase == killing {
		if survivors, over := a.killer.all(a); over {
			a.finish(survivors)
		}
	}
}

// finish reports that nothing is left but survivors.
func (a *attempt) finish(survivors []int) {
	a.finished = true
	if a.lease.told {
		a.frozen.endStopped()
	}
	for i := range a.states { // they do not die, or are still being started
		result := notStarted
		result.PID = a.states[i].pid
		a.ended(i, result)
	}
	var err error
	if len(survivors) > 0 {
		err = cannotKill(named(survivors))
	}
	hangs := a.queue.starts // what it starts later would not be of the next tree
	a.reports.add(func() {
		a.outputs.close()
		m := doneMessage{
			Ran: true, Ends: hangs, Unshown: len(a.outputs.unshown) > 0, Err: failureOf(err),
		}
		for i := range a.states {
			if a.states[i].tail != nil {
				m.Output = append(m.Output, a.outputs.message(i))
			}
		}
		if held := a.tree.Held; held != nil && a.conn.HasEnded() {
			held.end()
		} else if held != nil {
			held.Close()
		}
		a.reports.add(func() { // after the losses that close has found
			a.send(treeEnded, m)
			if hangs {
				os.Exit(0)
			}
			close(a.done)
		})
	})
}

// untilTimer is the time until the next start of a worker or, while the tree is being stopped,
// until the next search for orphans: the kernel reports the end of a child but not that the runner
// has adopted one.
func (a *attempt) untilTimer() time.Duration {
	if a.finished {
		return time.Hour
	}
	wait := min(a.lease.untilCheck(), a.frozen.untilLook(), a.outputs.untilTell())
	if !a.dumpAt.IsZero() {
		wait = min(wait, time.Until(a.dumpAt))
	}
	switch q := &a.queue; {
	case a.phase == killing:
		wait = min(wait, killPause)
	case a.phase != atWork:
		wait = min(wait, time.Until(a.scanned.Add(10*time.Millisecond)))
	case q.next < len(a.states) && !q.starts && a.lease.stopped == nil && !a.isJobStopped():
		wait = min(wait, q.untilNext())
	}
	a.lease.sleep(wait)
	return wait
}

// find is the worker with this pid; nil is none.
func (a *attempt) find(pid int) *state {
	for i := range a.states {
		if s := &a.states[i]; s.pid == pid && s.runs() {
			return s
		}
	}
	return nil
}

// changed handles the change of the status of a child.
func (a *attempt) changed(pid int, status syscall.WaitStatus) {
	s := a.find(pid)
	switch {
	case s == nil:
		if a.queue.starts { // it may be the worker
			a.changedEarly(pid, status)
		}
		switch {
		case status.Continued():
			a.lease.continued()
		case !status.Stopped():
			delete(a.sentTerm, pid) // another process may get its pid
		}
	case status.Stopped():
		a.suspended(s, status.StopSignal())
	case status.Continued():
		s.suspended, s.byShell, a.lastStop.signal = false, false, 0
		a.lease.continued()
	default:
		a.endedWith(s, status)
	}
}

// endedWith handles the end of a worker.
func (a *attempt) endedWith(s *state, status syscall.WaitStatus) {
	result := Result{
		PID: s.pid, Stopped: s.signalled || s.delivered, Took: time.Since(s.startedAt),
	}
	result.setStatus(status)
	if a.lease.told && result.Stopped {
		result.Err = ErrLeaseOver
	}
	a.running--
	for i := range a.states {
		if &a.states[i] == s {
			a.ended(i, result)
		}
	}
}

// notStarted is the Result of a worker that was stopped before it was started.
var notStarted = Result{Signal: syscall.SIGTERM, Stopped: true}

// outputWait is how long the end of a worker waits for what it has written to be copied.
const outputWait = 200 * time.Millisecond

// ended reports the result of a worker unless it has one, when the end of what it has written has
// been read.
func (a *attempt) ended(i int, result Result) {
	s := &a.states[i]
	if s.ended {
		return
	}
	s.ended = true
	a.live--
	until := time.Now().Add(outputWait)
	for _, t := range s.tees {
		t.WorkerEnded()
	}
	a.reports.add(func() {
		m := endMessage{Worker: i}
		if s.tail != nil {
			result.Stderr, result.Joined = s.text(until), s.joined
			s.judgeOutput(&result, until)
			m.Output = a.outputs.message(i)
		}
		m.Output.Worker = i
		m.Result, m.Err, m.Unread = result, failureOf(result.Err), failureOf(s.unread)
		a.send(workerEnded, m)
	})
}

// jobStop is the last signal of job control that stopped a worker. A terminal or a launcher sends
// it to all workers, and those that started meanwhile may not have received it. A worker that has
// received it twice stops once.
type jobStop struct {
	signal syscall.Signal // 0 if a worker was continued
	at     time.Time
}

// missFor is how long before and after its start a worker may miss such a signal.
const missFor = time.Second

// suspended handles that a signal has stopped a worker.
func (a *attempt) suspended(s *state, signal syscall.Signal) {
	s.suspended, s.byShell = true, isJobStop(signal)
	if s.byShell {
		a.lastStop = jobStop{signal, time.Now()}
		for i := range a.states {
			if w := &a.states[i]; w.runs() && !w.suspended && time.Since(w.startedAt) < missFor {
				_ = syscall.Kill(w.pid, signal)
			}
		}
	}
	if s.byShell {
		a.reportSuspended()
	}
}

// isJobStopped tells whether a terminal or a shell has stopped all running workers. No other one is
// started then.
func (a *attempt) isJobStopped() (some bool) {
	for i := range a.states {
		if w := &a.states[i]; w.runs() {
			if !w.byShell {
				return false
			}
			some = true
		}
	}
	return some
}

// reportSuspended reports it if a terminal or a shell has stopped all running workers.
func (a *attempt) reportSuspended() {
	if a.isJobStopped() && !a.queue.starts {
		a.reports.add(func() { // before the shell writes its prompt
			a.outputs.awaitIdle()
			a.send(allSuspended, nil)
		})
	}
}

// changedEarly notes the change of a child while a worker is being started, which may be that one.
// A signal of job control may have stopped it before it has executed its program, for which the
// starter waits: then it is continued, and stopped again when it has.
func (a *attempt) changedEarly(pid int, status syscall.WaitStatus) {
	if a.early == nil {
		a.early = map[int]syscall.WaitStatus{}
	}
	a.early[pid] = status
	if !status.Stopped() || !isJobStop(status.StopSignal()) {
		return
	}
	if p, err := procfs.Read(procfs.System, pid); err == nil && p.Name == parent.Name {
		a.lastStop = jobStop{status.StopSignal(), time.Now()}
		_ = syscall.Kill(pid, syscall.SIGCONT)
		delete(a.early, pid)
	}
}

func isJobStop(s syscall.Signal) bool {
	return s == syscall.SIGTSTP || s == syscall.SIGTTIN || s == syscall.SIGTTOU
}

// stopLate stops a worker that has just been started if it may have missed such a signal.
func (a *attempt) stopLate(s *state) {
	if a.lastStop.signal != 0 && s.startedAt.Before(a.lastStop.at.Add(missFor)) {
		_ = syscall.Kill(s.pid, a.lastStop.signal)
	}
}
