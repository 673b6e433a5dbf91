package wrap

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/watchdog"
)

// handle handles a record of the watchdog.
func (r *run) handle(e watchdog.Record) {
	i, s := e.Index, &r.states[e.Index]
	switch e.Kind {
	case watchdog.Started:
		ago := watchdog.Monotonic() - time.Duration(e.B)
		s.pid, s.startedAt = int(e.A), time.Now().Add(-ago)
		if r.tree.Started != nil {
			r.calls <- func() { r.tree.Started(i, int(e.A)) }
		}
	case watchdog.Refused:
		errno, code := syscall.Errno(e.A), 126
		if errno == syscall.ENOENT {
			code = 127
		}
		err := fmt.Errorf("cannot start %q: %w", r.tree.Workers[i].Path, errno)
		r.ended(i, Result{Code: code, Err: err})
	case watchdog.Skipped:
		r.ended(i, notStarted)
	case watchdog.Ended:
		result := Result{PID: s.pid, Stopped: e.C == 1, Took: time.Duration(e.B)}
		result.setStatus(syscall.WaitStatus(e.A))
		if r.leaseOver && result.Stopped {
			result.Err = ErrLeaseOver
		}
		r.ended(i, result)
	case watchdog.Suspended:
		s.suspended = slices.Contains(stopSignals, syscall.Signal(e.A))
		runs := slices.ContainsFunc(r.states, func(s state) bool {
			return !s.startedAt.IsZero() && !s.ended && !s.suspended
		})
		if r.tree.JobControl && s.suspended && !runs && underShell() {
			_ = unix.Kill(unix.Getpid(), unix.SIGSTOP) // returns after SIGCONT
		}
	case watchdog.Continued:
		s.suspended = false
	case watchdog.Dumping:
		r.dumping = append(r.dumping, Dump{Worker: i, IgnoresTerm: e.A == 1})
		if e.B == 0 {
			r.announceDump()
		}
	case watchdog.Drained:
		close(s.drained[e.A])
	case watchdog.OutputLost:
		r.outputLost(e)
	case watchdog.LogLost:
		r.logLost(e)
	case watchdog.LeaseOver:
		r.leaseOver = true
	case watchdog.Survivor:
		r.survivors = append(r.survivors, int(e.A))
	case watchdog.Finished:
		r.finished = true
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

// announceDump calls Tree.Dumping and then lets the workers print their stacks.
func (r *run) announceDump() {
	dumps := r.dumping
	r.dumping = nil
	r.calls <- func() {
		if r.tree.Dumping != nil {
			r.tree.Dumping(dumps)
		}
		r.guard.order(watchdog.Record{Kind: watchdog.Announced})
	}
}

// notStarted is the Result of a worker that was stopped before it was started.
var notStarted = Result{Signal: syscall.SIGTERM, Stopped: true}

// ended records the result of worker i unless it has one, and calls Tree.Ended when the end of its
// standard error has been read.
func (r *run) ended(i int, result Result) {
	s := &r.states[i]
	if s.ended {
		return
	}
	s.ended = true
	r.live--
	until := time.Now().Add(pumpWait)
	if s.pump != nil {
		s.pump.workerEnded()
	}
	r.calls <- func() {
		switch {
		case s.pump != nil:
			result.Stderr = s.pump.text(until)
		case s.tail != nil:
			result.Stderr, result.Joined = s.text(until), s.joined
			s.judgeOutput(&result, until)
		}
		result.GroupSignal = r.reports.groupSignal(s.startedAt, result)
		r.results[i] = result
		if r.tree.Ended != nil {
			r.tree.Ended(i, result)
		}
	}
}
