package wrap

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// jobSignals stop a process unless it catches or ignores them; terminals and shells send them.
var jobSignals = []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}

// jobControl keeps job control signals from stopping this process before its workers have stopped: an editor or a
// debugger first puts the terminal in order. It returns what ends that.
func (r *run) jobControl() (end func()) {
	if !r.tree.JobControl {
		return func() {}
	}
	caught := make(chan os.Signal, 1) // nobody reads it: the watchdog tells what the workers make of it
	ignored := ignoredSignals()
	for _, s := range jobSignals {
		if !ignored.Has(s) {
			signal.Notify(caught, s)
		}
	}
	return func() { signal.Stop(caught) }
}

// paused notes that worker i has been stopped by s, and stops this process if that was the last one running.
func (r *run) paused(i int, s syscall.Signal) {
	r.states[i].paused = s == syscall.SIGTSTP || s == syscall.SIGTTIN || s == syscall.SIGTTOU
	if !r.tree.JobControl || !underShell() {
		return
	}
	for _, s := range r.states {
		if !s.began.IsZero() && !s.ended && !s.paused {
			return
		}
	}
	if r.states[i].paused {
		_ = unix.Kill(unix.Getpid(), unix.SIGSTOP) // returns after SIGCONT
	}
}

// underShell reports whether this process's parent can be a shell that does job control, and so can continue it: it is of
// the same session but another process group.
func underShell() bool {
	parent := unix.Getppid()
	session, err := unix.Getsid(parent)
	own, errOwn := unix.Getsid(0)
	group, errGroup := unix.Getpgid(parent)
	return err == nil && errOwn == nil && errGroup == nil && session == own && group != unix.Getpgrp()
}
