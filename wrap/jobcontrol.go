package wrap

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// stopSignals stop a process unless it catches or ignores them. Terminals and shells send them.
var stopSignals = []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}

// catchStopSignals keeps the signals of job control from stopping this process before its workers have
// stopped: an editor or a debugger restores the terminal first. The returned function ends that.
func catchStopSignals() (end func()) {
	caught := make(chan os.Signal, 1) // not read: the watchdog reports which workers stop
	catch(caught, stopSignals)
	return func() { signal.Stop(caught) }
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
