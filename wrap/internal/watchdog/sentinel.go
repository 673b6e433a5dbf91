package watchdog

import (
	"syscall"
	"time"
	"unsafe"
)

// The sentinel tells whether a signal that the agent received was sent to the agent alone, or to
// its whole process group or to every process of a task. In the latter cases the workers have
// received it too. The kernel's siginfo does not tell kill(pid) from kill(-group).
//
// The sentinel is a fork of the watchdog, without exec, in the agent's process group. It blocks all
// signals, waits for them and writes each one to descriptor 1 as a Report. The kernel signals the
// youngest process of a group first, so the sentinel receives a signal before the agent does. Its
// name does not contain "rdzv": "pkill rdzv" signals processes by name, not the group, and does not
// reach the workers.

// SentinelName is the name of the sentinel as ps shows it.
const SentinelName = "tree-sentinel"

// Report is what the sentinel writes for each signal: the beginning of the kernel's siginfo
// (si_signo, si_errno, si_code, padding, si_pid; see sigaction(2)).
type Report struct {
	Signal int32
	_      [3]int32
	PID    int32 // of the sender, as this pid namespace sees it
}

// ReportSize is the length of a Report on the pipe in bytes.
const ReportSize = int(unsafe.Sizeof(Report{}))

// ParseReport decodes the ReportSize bytes of b, which were written on this machine.
func ParseReport(b []byte) Report {
	_ = b[ReportSize-1]
	return *(*Report)(unsafe.Pointer(&b[0]))
}

// Signals with which the watchdog marks a position in the reports of the sentinel. The kernel
// delivers the lowest of several pending signals first, so the report of a mark is the last of all
// signals that had reached the group when the mark was sent, independent of the load.
const (
	// QueryReply is sent for the agent, which has received a signal: it is the last process of its
	// group to receive it.
	QueryReply = syscall.Signal(62)
	// Barrier is sent before the watchdog reports the end of a worker that had no signal to end.
	// While the kernel signals a group, none of its processes can finish exiting.
	Barrier = syscall.Signal(63)
	// exitSentinel ends the sentinel after it has reported all other signals.
	exitSentinel = syscall.Signal(64)
)

// exitSentinelWait is how long exitSentinel may take; then the sentinel is killed.
const exitSentinelWait = time.Second

// sentinel is what the watchdog knows about its sentinel.
type sentinel struct {
	pid      int       // 0 if there is none
	exitSent time.Time // when exitSentinel was sent; zero before
}

// mark sends m, QueryReply or Barrier, to the sentinel, if there is one.
func (s *sentinel) mark(m syscall.Signal) {
	if s.pid != 0 {
		_ = syscall.Kill(s.pid, m)
	}
}

// reap reaps the sentinel if it has ended.
func (s *sentinel) reap() {
	if s.pid != 0 {
		pid, _ := syscall.Wait4(s.pid, nil, syscall.WNOHANG|syscall.WALL, nil)
		if pid == s.pid {
			s.pid = 0
		}
	}
}

// end makes the sentinel exit and reports whether it has ended. It is called until it has.
func (s *sentinel) end(now time.Time) (ended bool) {
	switch {
	case s.pid == 0:
		return true
	case s.exitSent.IsZero():
		s.exitSent = now
		s.move()
		_ = syscall.Kill(s.pid, exitSentinel)
	case now.Sub(s.exitSent) > exitSentinelWait: // it is stopped, or the agent does not read
		_ = syscall.Kill(s.pid, syscall.SIGKILL)
	}
	return false
}

// kill kills and reaps the sentinel, if there is one.
func (s *sentinel) kill() {
	if s.pid != 0 {
		s.move()
		_ = syscall.Kill(s.pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(s.pid, nil, syscall.WALL, nil)
	}
}

// move moves the sentinel from the agent's process group to the watchdog's before it ends. Its
// parent, the watchdog, is in the same session but in another group, so the sentinel keeps the
// agent's group from being orphaned. If it were the last such process and ended there, the kernel
// would send SIGHUP to the whole group as soon as one of its processes is stopped: to the script
// that started the agent and to the script's other jobs. The kernel checks that when a process
// exits (kill_orphaned_pgrp in kernel/exit.c), not when it changes its group.
func (s *sentinel) move() { _ = syscall.Setpgid(s.pid, syscall.Getpgrp()) }

// startSentinel forks the sentinel into the process group and returns its pid, or 0 if that failed:
// then the agent receives no reports and takes each signal as sent to itself alone. It must be
// called on the main thread.
func startSentinel(group int) int {
	const sigSetMask = 2 // SIG_SETMASK
	all, old := ^uint64(0), uint64(0)
	setMask := func(mask, old *uint64) {
		syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, sigSetMask,
			uintptr(unsafe.Pointer(mask)), uintptr(unsafe.Pointer(old)), sigsetSize, 0, 0)
	}
	name := (*[16]byte)([]byte(SentinelName + "\x00\x00\x00"))
	setMask(&all, &old)
	pid := forkSentinel(uintptr(syscall.Getpid()), uintptr(group), name)
	setMask(&old, nil)
	if pid != 0 && group != 0 {
		// The sentinel does so too, but it must be in the group before the first worker starts.
		_ = syscall.Setpgid(pid, group)
	}
	_ = syscall.Dup3(2, 1, 0) // only the sentinel keeps the pipe
	return pid
}

// forkSentinel forks and returns the pid, or 0 on failure. The child has one thread and no Go
// scheduler: it must not allocate, grow its stack or call anything but raw system calls, like the
// child in syscall.forkExec.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkSentinel(parent, group uintptr, name *[16]byte) int {
	var info [128]byte // the size of siginfo
	all := ^uint64(0)
	// The child has no exit signal, not SIGCHLD either, so that wait ignores it without __WALL.
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
	// The agent must see the end of file when the watchdog closes the socket or dies.
	syscall.RawSyscall(syscall.SYS_CLOSE, 0, 0, 0)
	if group != 0 {
		if _, _, errno = syscall.RawSyscall(syscall.SYS_SETPGID, 0, group, 0); errno != 0 {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 1, 0, 0)
		}
	}
	for {
		got, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGTIMEDWAIT,
			uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&info)), 0, sigsetSize, 0, 0)
		if errno != 0 || got == 0 {
			continue
		}
		sender := (*Report)(unsafe.Pointer(&info)).PID
		if got == uintptr(exitSentinel) && sender == int32(parent) {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, _, errno = syscall.RawSyscall(syscall.SYS_WRITE, 1,
			uintptr(unsafe.Pointer(&info)), uintptr(ReportSize))
		if errno != 0 {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
}
