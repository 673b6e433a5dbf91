package watchdog

import (
	"os"
	"syscall"
	"time"

	"rdzv/internal/procfs"
)

// The holder is a child of the agent and the parent of the watchdog. It is a child subreaper: if
// the watchdog dies it adopts the tree and kills it, also if the agent has died at the same time.
// Only an ancestor of the watchdog can do that, and only a process outside of the agent's process
// group is left when a launcher kills that group. It survives the same signals as the watchdog, and
// has no open files.
//
// Neither the names nor the arguments of holder, watchdog and sentinel contain "rdzv": "pkill -9
// rdzv" and "pkill -9 -f 'rdzv exec'" kill the agent alone.

// HolderName is the argv[0] of the holder, and its name as ps shows it.
const HolderName = "tree-holder"

// The complete environments of holder and watchdog. The two threads of the watchdog each return
// from a system call without waiting for the other one; the holder needs one thread. GORACE has an
// effect only in a program built with -race, which otherwise sleeps for a second before it exits.
var (
	HolderEnv   = []string{"GOMAXPROCS=1", "GORACE=atexit_sleep_ms=0"}
	watchdogEnv = []string{"GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0"}
)

// hold is the main function of the holder. It returns its exit code, which is that of the watchdog
// as a shell shows it.
func hold(s start) int {
	surviveSignals()
	setName(HolderName)
	pid, err := s.startWatchdog()
	if err != nil {
		errno, _ := err.(syscall.Errno) // package syscall returns nothing else
		tell(Record{Kind: Up, B: int64(errno)})
		return 1
	}
	closeFiles()
	status := awaitWatchdog(pid, s.agent)
	if status.Signaled() || status.ExitStatus() != 0 {
		killTree()
	} // otherwise only what the watchdog could not kill may be left, which the agent adopts
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// DiedEarly reports whether the end of the holder, before Up, was caused by a signal that it and
// the watchdog survive later: a Go program cannot block SIGTERM from its first moment on.
func DiedEarly(holder syscall.WaitStatus) bool {
	signal := holder.Signal()
	if holder.Exited() {
		signal = syscall.Signal(holder.ExitStatus() - 128) // of the watchdog
	}
	switch signal {
	case syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL,
		syscall.SIGTRAP, syscall.SIGSYS:
		return false
	}
	return signal > 0
}

// startWatchdog makes this process a child subreaper and starts the watchdog with its own first
// three descriptors and those that the agent has inherited.
func (s start) startWatchdog() (pid int, err error) {
	if errno := prctl(prSetChildSubreaper, 1); errno != 0 {
		return 0, errno
	}
	return syscall.ForkExec("/proc/self/exe", s.args(Name, watchdogPrefix), &syscall.ProcAttr{
		Env: watchdogEnv, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: s.group != 0},
	})
}

// closeFiles closes all files of this process.
func closeFiles() {
	const closeRange, all = 436, 1<<32 - 1 // Linux 5.9; the same number on all architectures
	_, _, errno := syscall.Syscall(closeRange, 0, all, 0)
	for fd := 0; errno != 0 && fd < 1<<16; fd++ {
		syscall.Close(fd)
	}
}

// awaitWatchdog waits for the end of the watchdog and returns its status. The agent gets a SIGCHLD
// when the watchdog is stopped or continued, as if it were its own child.
func awaitWatchdog(pid, agent int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED|syscall.WCONTINUED, nil)
		switch {
		case err != nil: // EINTR
		case status.Exited(), status.Signaled():
			return status
		case syscall.Getppid() == agent:
			_ = syscall.Kill(agent, syscall.SIGCHLD)
		}
	}
}

// killTree kills all children of this process until it has none, at most for KillWait. When a child
// dies its own children become children of this process.
func killTree() {
	for until := time.Now().Add(KillWait); time.Now().Before(until); time.Sleep(time.Millisecond) {
		children, _ := procfs.Children(procfs.System, os.Getpid())
		for _, pid := range children {
			_ = syscall.Kill(pid, syscall.SIGKILL) // nothing else reaps it
		}
		for pid := 1; pid > 0; {
			var err error
			pid, err = syscall.Wait4(-1, nil, syscall.WNOHANG|syscall.WALL, nil)
			if err == syscall.ECHILD {
				return
			}
		}
	}
}
