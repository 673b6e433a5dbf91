package watchdog

import (
	"syscall"
	"unsafe"
)

// The signals whose default action in a Go program is to end or to stop the process. The Go runtime
// catches all others that can be caught and does nothing (os/signal, "Default behavior of signals
// in Go programs").
var (
	fatalSignals = []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGTERM,
		syscall.SIGILL, syscall.SIGTRAP, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV,
		syscall.SIGSTKFLT, syscall.SIGSYS,
	}
	stopSignals = []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}
)

// surviveSignals makes this process survive every signal that can be caught, without changing the
// signal actions of its workers, although an ignored signal stays ignored after exec.
//
// It uses rt_sigaction(2) because package os/signal would start threads. Signals that the runtime
// has caught can be ignored here: between fork and exec the runtime resets each of those to its
// default action (clearSignalHandlers in package runtime). Signals that the runtime has not caught
// get the handler of SIGWINCH, which exec resets: for a signal that the runtime does not use and
// that does not end Go programs it does nothing (sigfwdgo in package runtime). A fault in this
// process still ends it: a SIGSEGV raised by the kernel cannot be ignored.
//
// Signals that were ignored when the process started stay ignored for it and its workers if they
// are SIGHUP, SIGINT (nohup) or signals of job control.
func surviveSignals() {
	for _, s := range fatalSignals {
		setAction(s, &action{sigIgn})
	}
	noop := setAction(syscall.SIGWINCH, nil)
	for _, s := range stopSignals {
		if setAction(s, nil)[0] != sigIgn {
			setAction(s, &noop)
		}
	}
	setAction(syscall.SIGCHLD, &action{}) // serveChildren waits for children and needs no SIGCHLD
}

// action is the kernel's struct sigaction, which begins with the handler (not on MIPS).
type action [8]uintptr

// sigIgn is SIG_IGN.
const sigIgn = 1

// sigsetSize is the size of the kernel's signal sets in bytes.
const sigsetSize = 8

// setAction sets the action of s unless set is nil, and returns the one before.
func setAction(s syscall.Signal, set *action) (before action) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(set)),
		uintptr(unsafe.Pointer(&before)), sigsetSize, 0, 0)
	return before
}
