package wrap

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/watchdog"
)

// watchdogEnv is the whole environment of a watchdog: it needs none. Of its two threads, each returns from a system call
// without waiting for the other. GORACE counts only in a program built with -race, whose processes otherwise sleep a second
// before they end.
var watchdogEnv = []string{"GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0"}

// launch starts the process and notes it among the guards of this process.
func (g *guard) launch(socket *os.File, sentinel bool) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	report := null
	if sentinel {
		var ends [2]int
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			return err
		}
		report = os.NewFile(uintptr(ends[1]), "reports")
		defer report.Close()
		g.reports, err = pollable(ends[0], "reports")
		if err != nil {
			return err
		}
	}
	group := unix.Getpgrp()
	guards.Lock()
	defer guards.Unlock()
	g.slack = relaxed(func() {
		g.process, err = os.StartProcess("/proc/self/exe", watchdog.Args(os.Getpid(), group, sentinel), &os.ProcAttr{
			Env:   watchdogEnv,
			Files: []*os.File{socket, report, null},
			// A group 0 is one that this pid namespace cannot name; then none of us can be put back into it.
			Sys: &syscall.SysProcAttr{Setpgid: group != 0},
		})
	})
	if err != nil {
		if g.reports != nil {
			g.reports.Close()
		}
		return err
	}
	guards.pids[g.process.Pid] = true
	return nil
}

// watchdogSlack is how much later than asked for the clock may wake a thread of the watchdog. The Go runtime has one that
// looks after the others every 20 µs, and 10 ms at most, while any of them has something to do or waits for a processor: of
// 64 watchdogs at the end of a job, these looks took as much processor time as the end itself.
const watchdogSlack = 5 * time.Millisecond

// relaxed calls start in a thread whose timer slack, which processes inherit, is watchdogSlack, and returns what it was.
func relaxed(start func()) (slack int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err == nil && slack > 0 && unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(watchdogSlack), 0, 0, 0) == nil {
		defer unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0)
	}
	start()
	return slack
}

// pollable makes a descriptor one that can be given deadlines.
func pollable(fd int, name string) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
