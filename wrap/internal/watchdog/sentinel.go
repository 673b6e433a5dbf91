package watchdog

import (
	"syscall"
	"time"
	"unsafe"
)

// The sentinel answers the question whether a signal that reached the agent was sent to it alone or to its whole
// process group (a terminal, a launcher's daemon, timeout, a shell's "kill %1") or to every process around (Slurm,
// systemd): whoever it was, the workers have then had it. No siginfo tells kill(pid) from kill(-group).
//
// It is a forked copy of the watchdog, never executed anew, that does nothing but take signals: in the agent's process
// group, all signals blocked, it waits for them one by one and writes each as a Report to descriptor 1. The kernel
// signals the youngest of a group first, so the sentinel has a signal before the agent has it. Its name is not rdzv's, for
// "pkill rdzv" sends a signal to each process of that name, not to the group, and not to the workers.

// SentinelName is the sentinel's name as ps shows it.
const SentinelName = "tree-sentinel"

// Report is what the sentinel writes for each signal: the beginning of the kernel's siginfo.
type Report struct {
	Signal int32
	_      [3]int32
	PID    int32 // of the sender as this pid namespace sees it
}

// ReportSize is the length of a Report on the pipe, in bytes.
const ReportSize = int(unsafe.Sizeof(Report{}))

// ParseReport decodes the ReportSize bytes of b, which come from this machine.
func ParseReport(b []byte) Report {
	_ = b[ReportSize-1]
	return *(*Report)(unsafe.Pointer(&b[0]))
}

// Signals by which the watchdog finds out what has reached the sentinel. Of several pending signals the lowest comes
// first, so their report is the last of all that had reached the group by then, whatever the load.
const (
	Answer  = syscall.Signal(62) // sent for the agent, which has got a signal: the last of its group to get it
	Barrier = syscall.Signal(63) // sent before the end of a worker is told that nobody had stopped; while the kernel goes through a group, none of it can finish dying
)

// report makes the sentinel report s, if there is one.
func (w *watch) report(s syscall.Signal) {
	if w.sentinel != 0 {
		_ = syscall.Kill(w.sentinel, s)
	}
}

// leave is the signal that ends the sentinel, after it has reported all others.
const leave = syscall.Signal(64)

// leaveWait is how long that may take; then it is killed.
const leaveWait = time.Second

// reapSentinel forgets the sentinel if it has ended.
func (w *watch) reapSentinel() {
	if w.sentinel != 0 {
		if pid, _ := syscall.Wait4(w.sentinel, nil, syscall.WNOHANG|syscall.WALL, nil); pid == w.sentinel {
			w.sentinel = 0
		}
	}
}

// dismiss ends the sentinel and reports whether it has gone.
func (w *watch) dismiss(now time.Time) (gone bool) {
	switch {
	case w.sentinel == 0:
		return true
	case w.dismissed.IsZero():
		w.dismissed = now
		w.withdraw()
		_ = syscall.Kill(w.sentinel, leave)
	case now.Sub(w.dismissed) > leaveWait: // it is stopped, or the agent does not read
		_ = syscall.Kill(w.sentinel, syscall.SIGKILL)
	}
	return false
}

// withdraw takes the sentinel out of the agent's group before it ends. As our child, of the same session but another
// group, it keeps that group from being an orphaned one; if it ended there as the last that does, the kernel would send
// SIGHUP to all of the group as soon as any of it is stopped: to the script that has started the agent, and to the
// script's other jobs. (kill_orphaned_pgrp in the kernel's exit.c; only an end counts, not a change of group.)
func (w *watch) withdraw() { _ = syscall.Setpgid(w.sentinel, syscall.Getpgrp()) }

const sigSetMask = 2

// startSentinel forks the sentinel into group and returns its pid, or 0 if that did not work: then the agent will
// hear nothing and take every signal for its own alone. It must be called from the main thread.
func startSentinel(group int) int {
	all, old := ^uint64(0), uint64(0)
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, sigSetMask, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&old)), sigsetSize, 0, 0)
	pid := forkSentinel(uintptr(syscall.Getpid()), uintptr(group), (*[16]byte)([]byte(SentinelName+"\x00\x00\x00")))
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, sigSetMask, uintptr(unsafe.Pointer(&old)), 0, sigsetSize, 0, 0)
	if pid != 0 && group != 0 {
		_ = syscall.Setpgid(pid, group) // as it does itself: it must be there before any worker, but may not run before
	}
	_ = syscall.Dup3(2, 1, 0) // the pipe is the sentinel's alone
	return pid
}

// forkSentinel forks. The child has one thread and no scheduler: it must not allocate, grow its stack, or call
// anything but raw system calls, as the child in syscall.forkExec.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkSentinel(parent, group uintptr, name *[16]byte) int {
	var info [128]byte // the size of siginfo
	all := ^uint64(0)
	// A child whose end is told by no signal, and not by SIGCHLD, is one that wait does not know of unless it is asked for
	// such children too.
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, 0, 0, 0, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	if pid != 0 {
		return int(pid)
	}
	syscall.RawSyscall(syscall.SYS_PRCTL, prSetPdeathsig, uintptr(syscall.SIGKILL), 0)
	if ppid, _, _ := syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0); ppid != parent {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 1, 0, 0)
	}
	syscall.RawSyscall(syscall.SYS_PRCTL, prSetName, uintptr(unsafe.Pointer(name)), 0)
	syscall.RawSyscall(syscall.SYS_CLOSE, 0, 0, 0) // the agent must see the watchdog's end of the socket close
	if group != 0 {
		if _, _, errno = syscall.RawSyscall(syscall.SYS_SETPGID, 0, group, 0); errno != 0 {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 1, 0, 0)
		}
	}
	for {
		got, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&info)), 0, sigsetSize, 0, 0)
		if errno != 0 || got == 0 {
			continue
		}
		if got == uintptr(leave) && (*Report)(unsafe.Pointer(&info)).PID == int32(parent) {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		if _, _, errno = syscall.RawSyscall(syscall.SYS_WRITE, 1, uintptr(unsafe.Pointer(&info)), uintptr(ReportSize)); errno != 0 {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
}
