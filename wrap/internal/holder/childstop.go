package holder

import "syscall"

// See child.go for what the functions of this file may do.

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
