package wrap

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/watchdog"
)

// watchdogEnv is the complete environment of a watchdog. With GOMAXPROCS=2 each of its two threads
// returns from a system call without waiting for the other one. GORACE has an effect only in a
// program built with -race, which otherwise sleeps for a second before it exits.
var watchdogEnv = []string{"GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0"}

// launch starts the process and adds it to the guards of this process.
func (g *guard) launch(socket *os.File, sentinel bool) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	report := null
	if sentinel {
		if g.reports, report, err = pipe(); err != nil {
			return err
		}
		defer report.Close()
	}
	group := unix.Getpgrp()
	args := watchdog.Args(os.Getpid(), group, sentinel)
	guards.Lock()
	defer guards.Unlock()
	runtime.LockOSThread() // a process inherits the timer slack of the thread that starts it
	defer runtime.UnlockOSThread()
	if slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err == nil && slack > 0 {
		g.slack = slack
		setTimerSlack(int(watchdogSlack))
		defer setTimerSlack(slack)
	}
	g.process, err = os.StartProcess("/proc/self/exe", args, &os.ProcAttr{
		Env:   watchdogEnv,
		Files: []*os.File{socket, report, null},
		// Group 0 has no number in this pid namespace: no process could be put back into it.
		Sys: &syscall.SysProcAttr{Setpgid: group != 0},
	})
	if err == nil {
		guards.pids[g.process.Pid] = true
	}
	return err
}

// watchdogSlack is how much later than requested the kernel may wake a thread of the watchdog
// (timer slack, prctl(2)). The Go runtime has a thread, sysmon, that wakes every 20 µs, or less
// often down to every 10 ms, while another one is busy or waits for a processor. When 64 watchdogs
// stop at the end of a job, that took as much processor time as all their other work.
const watchdogSlack = 5 * time.Millisecond

func setTimerSlack(ns int) { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(ns), 0, 0, 0) }
