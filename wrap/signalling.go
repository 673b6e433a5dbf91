package wrap

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// signal sends a signal to a worker, or with group to its process group, if it has one of its own.
func (a *attempt) signal(s *state, signal syscall.Signal, group bool) {
	if !s.runs() {
		return
	}
	pid := s.pid
	if group {
		if g, err := unix.Getpgid(pid); err == nil && g == pid {
			pid = -pid
		}
	}
	_ = syscall.Kill(pid, signal)
}

// end sends s, a signal to end, and continues the worker if it is suspended, so that it can handle
// that.
func (a *attempt) end(s *state, signal syscall.Signal) {
	a.signal(s, signal, a.endGroups && signal == syscall.SIGTERM && a.hasGroups())
	s.signalled = true
	a.wake(s)
}

func (a *attempt) wake(s *state) {
	if s.suspended {
		a.signal(s, syscall.SIGCONT, false)
	}
}

// hasGroups says whether signals are for the process groups of the workers.
func (a *attempt) hasGroups() bool { return a.tree.Signalled == Launched && !a.terminal }

// forward sends a signal to the workers that have not received it.
func (a *attempt) forward(e Event) {
	switch e.Signal {
	case syscall.SIGWINCH, syscall.SIGCONT: // in the background nobody is told of a new size
		a.resize()
	}
	for i := range a.states {
		s := &a.states[i]
		if has := e.Shared && s.startedAt.Before(e.At); !has {
			a.signal(s, e.Signal, a.hasGroups())
		}
	}
	a.queue.missed |= 1 << (e.Signal - 1)
}

// resize gives the pseudoterminals of the workers a new size. All that they run are told: the
// signal that they may have received from the terminal itself came too early.
func (a *attempt) resize() {
	if !a.outputs.resize() {
		return
	}
	if a.terminal && a.group != 0 {
		_ = syscall.Kill(-a.group, syscall.SIGWINCH)
		return
	}
	for i := range a.states {
		if s := &a.states[i]; len(s.tees) > 0 {
			a.signal(s, syscall.SIGWINCH, true)
		}
	}
}

// forwardStop passes a signal of job control to workers that are not in the process group of the
// agent, which it then stops as a terminal would do.
func (a *attempt) forwardStop(signal syscall.Signal) {
	if !a.terminal && a.tree.Signalled != Everyone {
		for i := range a.states {
			a.signal(&a.states[i], signal, true)
		}
	}
}

// prepareDump prepares the worker, once, for SIGABRT if it catches it, as with Python's
// faulthandler, which then prints the stacks; with ignoringTerm only if it also ignores SIGTERM.
// The worker will not write a core file. prepareDump reports whether it is to receive the signal.
func (s *state) prepareDump(ignoringTerm bool) bool {
	if !s.runs() || s.prepared {
		return false
	}
	sets, _ := procfs.ReadSignals(procfs.System, s.pid)
	if ignoringTerm && !sets.Ignored.Has(syscall.SIGTERM) || !sets.Caught.Has(syscall.SIGABRT) ||
		!disableCore(s.pid) {
		return false
	}
	s.prepared = true
	return true
}

// endSignal is the first signal by which the worker is to end: SIGABRT if it is to print its stacks
// and catches that.
func (s *state) endSignal(dump bool) syscall.Signal {
	if dump && s.prepareDump(false) {
		return syscall.SIGABRT
	}
	return syscall.SIGTERM
}

// ignoresTerm reports whether the worker ignores SIGTERM.
func (s *state) ignoresTerm() bool {
	sets, _ := procfs.ReadSignals(procfs.System, s.pid)
	return sets.Ignored.Has(syscall.SIGTERM)
}

// diesOf reports whether signal, whose default action is to end a process, ends the worker, which
// may wait for one that it blocks. But a worker that is about to fork blocks all signals for a
// moment, also those that nobody waits for: then diesOf looks again, for 20 ms at most.
func (s *state) diesOf(signal syscall.Signal) bool {
	for range 20 {
		sets, err := procfs.ReadSignals(procfs.System, s.pid)
		dies := err == nil && !(sets.Caught | sets.Ignored | sets.Blocked).Has(signal)
		if dies || !sets.Blocked.Has(syscall.SIGSEGV) {
			return dies
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// disableCore keeps pid from writing a core file: after faulthandler has printed the stacks it
// raises SIGABRT with its default action.
//
// The limit becomes 1 byte instead of 0 because the kernel ignores a limit of 0 if core_pattern is
// a pipe to a program, but not a limit of 1 (core(5); do_coredump in the kernel). If the hard limit
// is 0, the limit remains 0.
func disableCore(pid int) bool {
	var limit unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &limit) != nil {
		return false
	}
	limit.Cur = min(1, limit.Max)
	return unix.Prlimit(pid, unix.RLIMIT_CORE, &limit, nil) == nil
}

// sameGroup tells whether the workers belong to the process group of a process, the agent or their
// task, because a terminal, or a shell that controls jobs there, acts on the whole group.
func (t *Tree) sameGroup(pid int) bool {
	if !t.JobControl || t.Signalled == Everyone {
		return false
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	foreground := 0
	if raw, err := tty.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { foreground, _ = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
	}
	group, _ := unix.Getpgid(pid)
	return foreground == group || t.Signalled == Alone && underShell(pid)
}
