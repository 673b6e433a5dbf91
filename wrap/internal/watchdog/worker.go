package watchdog

import (
	"syscall"
	"time"
	"unsafe"

	"rdzv/internal/procfs"
)

// worker is the state of a running worker.
type worker struct {
	index     int // in the Spec
	pid       int
	startedAt time.Duration // Monotonic, before its start
	suspended bool          // stopped by a signal, as in job control
	signalled bool          // it has received a signal to end
	delivered bool          // it had when the tree was to be stopped, with its process group
	prepared  bool          // it has received SIGABRT, or is about to
	announced bool          // it is about to receive SIGABRT
}

// Monotonic is the time of CLOCK_MONOTONIC, which all processes of a machine share.
func Monotonic() time.Duration {
	const clockMonotonic = 1
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}

// send sends s to the worker, which has not been reaped, so that its pid is still its own.
func (e *worker) send(s syscall.Signal) {
	_ = syscall.Kill(e.pid, s) // EPERM: the worker runs as another user
}

// end sends s, a signal to end.
func (e *worker) end(s syscall.Signal) {
	e.send(s)
	e.signalled = true
	e.wake()
}

// wake continues the worker if it is suspended, so that it can handle its signal.
func (e *worker) wake() {
	if e.suspended {
		e.send(syscall.SIGCONT)
	}
}

// prepareDump prepares the worker, once, for SIGABRT if it catches it, as with Python's
// faulthandler, which then prints the stacks; with ignoringTerm only if it also ignores SIGTERM.
// The worker will not write a core file. prepareDump reports whether it is to receive the signal.
func (e *worker) prepareDump(ignoringTerm bool) bool {
	sets, _ := procfs.ReadSignals(procfs.System, e.pid)
	if e.prepared || ignoringTerm && !e.ignoresTerm() ||
		!sets.Caught.Has(syscall.SIGABRT) || !disableCore(e.pid) {
		return false
	}
	e.prepared = true
	return true
}

// ignoresTerm reports whether the worker ignores SIGTERM.
func (e *worker) ignoresTerm() bool {
	sets, _ := procfs.ReadSignals(procfs.System, e.pid)
	return sets.Ignored.Has(syscall.SIGTERM)
}

// diesOf reports whether s, whose default action is to end a process, ends the worker.
func (e *worker) diesOf(s syscall.Signal) bool {
	sets, err := procfs.ReadSignals(procfs.System, e.pid)
	return err == nil && !(sets.Caught | sets.Ignored | sets.Blocked).Has(s)
}

// disableCore keeps pid from writing a core file: after faulthandler has printed the stacks it
// raises SIGABRT with its default action.
//
// The limit becomes 1 byte instead of 0 because the kernel ignores a limit of 0 if core_pattern is
// a pipe to a program, but not a limit of 1 (core(5); do_coredump in the kernel). If the hard limit
// is 0, the limit remains 0.
func disableCore(pid int) bool {
	var limit syscall.Rlimit
	if prlimit(pid, nil, &limit) != 0 {
		return false
	}
	limit.Cur = min(1, limit.Max)
	return prlimit(pid, &limit, nil) == 0
}

func prlimit(pid int, set, get *syscall.Rlimit) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_CORE,
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), 0, 0)
	return errno
}
