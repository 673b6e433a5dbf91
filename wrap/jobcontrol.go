package wrap

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// stopSignals stop a process unless it catches or ignores them. Terminals and shells send them.
var stopSignals = []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}

// jobControl keeps the signals of job control from stopping this process before its workers have
// stopped: an editor or a debugger restores the terminal first. The returned function ends that.
func (r *run) jobControl() (end func()) {
	if !r.tree.JobControl {
		return func() {}
	}
	caught := make(chan os.Signal, 1) // not read: the watchdog reports which workers stop
	catch(caught, stopSignals)
	return func() { signal.Stop(caught) }
}

// suspended records that worker i was stopped by s, and stops this process if that was the last
// worker that ran.
func (r *run) suspended(i int, s syscall.Signal) {
	r.states[i].suspended = s == syscall.SIGTSTP || s == syscall.SIGTTIN || s == syscall.SIGTTOU
	if !r.tree.JobControl || !underShell() {
		return
	}
	for _, s := range r.states {
		if !s.startedAt.IsZero() && !s.ended && !s.suspended {
			return
		}
	}
	if r.states[i].suspended {
		_ = unix.Kill(unix.Getpid(), unix.SIGSTOP) // returns after SIGCONT
	}
}

// underShell reports whether the parent of this process can be a shell with job control, which can
// continue this process: it is in the same session but in another process group.
func underShell() bool {
	parent := unix.Getppid()
	session, err := unix.Getsid(parent)
	own, errOwn := unix.Getsid(0)
	group, errGroup := unix.Getpgid(parent)
	return err == nil && errOwn == nil && errGroup == nil &&
		session == own && group != unix.Getpgrp()
}
