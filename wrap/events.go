package wrap

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/holder"
)

// handle handles a record of the holder.
func (r *run) handle(e holder.Record) {
	i, s := e.Index, &r.states[e.Index]
	switch e.Kind {
	case holder.Started:
		r.started(i, int(e.A), time.Duration(e.B))
	case holder.Refused:
		r.queue.ordered--
		errno, code := syscall.Errno(e.A), 126
		if errno == syscall.ENOENT {
			code = 127
		}
		err := fmt.Errorf("cannot start %q: %w", r.tree.Workers[i].Path, errno)
		r.ended(i, Result{Code: code, Err: err})
	case holder.Ended:
		// e.C is exact: what ended before the order did not end because of it.
		result := Result{PID: s.pid, Stopped: e.C == 1 || s.delivered}
		result.Took = time.Duration(e.B) - s.began
		result.setStatus(syscall.WaitStatus(e.A))
		if r.lease.told && result.Stopped {
			result.Err = ErrLeaseOver
		}
		r.running--
		r.ended(i, result)
	case holder.Suspended:
		s.suspended, s.byShell = true, slices.Contains(stopSignals, syscall.Signal(e.A))
		runs := r.queue.ordered > 0 || slices.ContainsFunc(r.states, func(s state) bool {
			return s.runs() && !s.byShell
		})
		if r.tree.JobControl && s.byShell && !runs && underShell() {
			_ = unix.Kill(unix.Getpid(), unix.SIGSTOP) // returns after SIGCONT
		}
	case holder.Continued:
		s.suspended, s.byShell = false, false
		r.lease.continued()
	case holder.Received:
		if r.tree.Source != nil {
			r.tree.Source.received(syscall.Signal(e.A))
		}
	case holder.Paused:
		r.lease.wasStopped()
	case holder.LeaseOver:
		r.lease.told = r.lease.told || r.phase == atWork
	case holder.Survivor:
		if !slices.Contains(r.survivors, int(e.A)) {
			r.survivors = append(r.survivors, int(e.A))
		}
	case holder.Finished:
		if r.finished = true; len(r.survivors) == 0 {
			r.outputs.close()
		}
	}
}

// stopSignals stop a process unless it catches or ignores them. Terminals and shells send them.
// With Tree.JobControl this process catches them, so that they do not stop it before its workers
// have stopped: an editor or a debugger restores the terminal first.
var stopSignals = []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}

// underShell reports whether the parent of this process can be a shell with job control, which can
// continue this process: it is in the same session but in another process group.
func underShell() bool {
	parent := unix.Getppid()
	session, err := unix.Getsid(parent)
	own, _ := unix.Getsid(0)
	group, errGroup := unix.Getpgid(parent)
	return err == nil && errGroup == nil && session == own && group != unix.Getpgrp()
}

// notStarted is the Result of a worker that was stopped before it was started.
var notStarted = Result{Signal: syscall.SIGTERM, Stopped: true}

// outputWait is how long the end of a worker waits for what it has written to be copied.
const outputWait = 200 * time.Millisecond

// ended records the result of worker i unless it has one, and calls Tree.Ended when the end of its
// standard error has been read.
func (r *run) ended(i int, result Result) {
	s := &r.states[i]
	if s.ended {
		return
	}
	s.ended = true
	r.live--
	until := time.Now().Add(outputWait)
	for _, t := range s.tees {
		t.WorkerEnded()
	}
	startedAt := s.startedAt
	r.calls <- func() {
		if s.tail != nil {
			result.Stderr, result.Joined = s.text(until), s.joined
			s.judgeOutput(&result, until)
		}
		if r.tree.Source != nil && (r.terminal || r.tree.Signalled == Everyone) {
			result.GroupSignal = r.tree.Source.groupSignal(startedAt, result)
		}
		r.results[i] = result
		if r.tree.Ended != nil {
			r.tree.Ended(i, result)
		}
	}
}
