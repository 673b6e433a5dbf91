package watchdog

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Two threads wait, each in its own system call: one for children, one for the agent's orders. Each
// acts on what it receives, under one lock. To pass it to another thread would cost more than all
// the rest if 64 watchdogs stop their trees at the same time on two cores.

// agent is the descriptor of the socket to the agent.
const agent = 0

// forever is a wait without a limit.
const forever time.Duration = -1

// serveAgent carries out the agent's orders, and Kill when the agent has ended. While the tree is
// being stopped it also searches for orphans at intervals.
func (w *watchdog) serveAgent() {
	for fd := int32(agent); ; {
		order, scan := Record{}, true
		if readable(fd, w.untilScan()) {
			b, err := readFull(agent, RecordSize)
			if err != nil {
				b, fd = Record{Kind: Kill}.Bytes(), -1
			}
			order = ParseRecord(b)
			scan = order.Kind == Kill
		}
		w.step(order, scan)
	}
}

// serveChildren handles changes of children until none is left. Then no descendant runs, so none
// can become a child any more.
func (w *watchdog) serveChildren() {
	w.step(Record{}, false) // for an order that came before the first worker was started
	for waitChild(syscall.WEXITED | syscall.WSTOPPED | syscall.WCONTINUED) {
		w.step(Record{}, false)
	}
	for waitChild(syscall.WEXITED | syscall.WALL) { // the sentinel
		w.step(Record{}, false)
	}
}

// step carries out the order, unless it is zero, does what the phase then requires, and ends this
// process when it is done. scan is that of advance.
func (w *watchdog) step(order Record, scan bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if order.Kind != 0 {
		w.handle(order)
	}
	now := time.Now()
	if scan {
		w.scanned = now
	}
	if w.starting {
		return // start checks the phase before each worker
	}
	if w.advance(now, scan) {
		os.Exit(0)
	}
}

// untilScan is the time until the next search for orphans.
func (w *watchdog) untilScan() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase == running {
		return forever
	}
	return max(0, time.Until(w.scanned.Add(w.phase.scanInterval())))
}

// readable waits at most d until fd is readable or at end of file, and reports whether it is. A
// negative fd never is (poll(2)).
func readable(fd int32, d time.Duration) bool {
	const pollIn = 1
	set := struct {
		fd              int32
		events, revents int16
	}{fd: fd, events: pollIn}
	var limit *syscall.Timespec
	if d != forever {
		t := syscall.NsecToTimespec(int64(d))
		limit = &t
	}
	n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL,
		uintptr(unsafe.Pointer(&set)), 1, uintptr(unsafe.Pointer(limit)), 0, 0, 0)
	return errno == 0 && n > 0
}

// waitChild waits until a child has changed its state, without reaping it, and reports whether
// there is a child. The options are those of waitid(2).
func waitChild(options int) bool {
	const pAll = 0
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pAll, 0, 0,
		uintptr(options|syscall.WNOWAIT), 0, 0)
	return errno == 0 || errno == syscall.EINTR
}
