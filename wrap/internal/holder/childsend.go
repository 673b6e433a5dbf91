package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

// signal sends a signal to a child, which has not been reaped, so that its pid is its own.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) signal(pid uintptr, signal syscall.Signal, flags int64) {
	if child, ended := w.look(pid); !child || ended {
		return
	}
	if s := w.find(pid); s != nil && flags&End != 0 {
		s.signalled = true
	}
	if flags&Group != 0 {
		pid = -pid
	}
	sys(syscall.SYS_KILL, pid, uintptr(signal), 0, 0) // EPERM: it runs as another user
}

// terminate sends SIGTERM to the workers that have not received a signal to end.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) terminate() {
	for i := range w.list {
		if s := w.at(i); s.pid != 0 && !s.signalled {
			w.signal(s.pid, syscall.SIGTERM, End)
		}
	}
}

// look tells whether a process is a child, and whether it has ended. It is not reaped.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) look(pid uintptr) (child, ended bool) {
	const pPid, options = 1, syscall.WEXITED | syscall.WNOHANG | syscall.WNOWAIT
	w.info.pid = 0
	_, errno := sys(syscall.SYS_WAITID, pPid, pid, uintptr(unsafe.Pointer(&w.info)), options)
	return errno == 0, w.info.pid != 0
}

// siginfo is the kernel's, on machines of 64 bits. It is too large for the stack.
type siginfo struct {
	_   [16]byte
	pid int32 // of a child that has ended
	_   [108]byte
}

// stop is the last signal of job control that stopped a worker. A terminal or a launcher sends it
// to all workers, and those that started meanwhile may not have received it. A worker that has
// received it twice stops once.
type stop struct {
	signal syscall.Signal // 0 if a worker was continued
	at     int64
}

// missFor is how long before and after its start a worker may miss the signal.
const missFor = second

// mayMiss tells whether a worker that began now may not have received the signal.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (s *stop) mayMiss(began int64) bool { return s.signal != 0 && began < s.at+missFor }

// stopStarted is called when a signal has stopped a worker. If it is one of job control it stops
// those started shortly before, too; started stops those that start shortly after.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) stopStarted(signal syscall.Signal) {
	if signal != syscall.SIGTSTP && signal != syscall.SIGTTIN && signal != syscall.SIGTTOU {
		return
	}
	w.stop.signal, w.stop.at = signal, clock(clockMonotonic)
	for i := range w.list {
		if s := w.at(i); s.pid != 0 && !s.suspended && w.stop.at < s.began+missFor {
			sys(syscall.SYS_KILL, s.pid, uintptr(signal), 0, 0)
		}
	}
}
