package watchdog

import (
	"syscall"
	"unsafe"
)

// The signals that the Go runtime does not survive by itself: of the first kind it dies, at the second it stops. All others
// that can be survived it catches from the start, and does nothing (package os/signal, "Default behavior of signals in Go
// programs").
var (
	deadly = []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGTERM,
		syscall.SIGILL, syscall.SIGTRAP, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGSTKFLT, syscall.SIGSYS,
	}
	halting = []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}
)

// outliveSignals makes this process survive every signal that can be survived, and without a trace in its workers,
// although what is ignored stays so in all that is executed.
//
// The kernel is asked and not package os/signal, which would start threads. What the runtime has caught may be ignored
// here: between fork and exec it gives each of those signals its default action again (clearSignalHandlers in package
// runtime). What it has not caught gets its handler of another signal, which exec takes away; it does nothing about a signal
// that the runtime leaves alone and that is not the death of Go programs (sigfwdgo in package runtime). A bug of ours still
// ends this process: a SIGSEGV that the kernel itself raises passes for neither caught nor ignored then.
//
// Of what was ignored from the start SIGHUP, SIGINT (nohup) and the signals of job control stay so, for this process and for
// the workers.
func outliveSignals() {
	for _, s := range deadly {
		setAction(s, action{ignored})
	}
	harmless := actionOf(syscall.SIGWINCH)
	for _, s := range halting {
		if actionOf(s)[0] != ignored {
			setAction(s, harmless)
		}
	}
	setAction(syscall.SIGCHLD, action{}) // who waits for children need not be told of them (mindChildren)
}

// action is the kernel's struct sigaction, which begins with the handler (not so on MIPS).
type action [8]uintptr

// ignored is SIG_IGN.
const ignored = 1

// sigsetSize is that of the kernel's signal sets, in bytes.
const sigsetSize = 8

func actionOf(s syscall.Signal) (a action) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), 0, uintptr(unsafe.Pointer(&a)), sigsetSize, 0, 0)
	return a
}

func setAction(s syscall.Signal, a action) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&a)), 0, sigsetSize, 0, 0)
}
