package watchdog

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Two threads wait, each in a system call of its own: one for the children, one for the agent's orders. What either hears
// it acts upon itself, under one lock: handing things over to another thread would cost more than all else, where 64
// watchdogs stop their trees at once on two cores.

// agent is the socket to the agent.
const agent = 0

// never is a wait without end.
const never time.Duration = -1

// mindAgent carries out the agent's orders, Kill once it has gone, and looks at the tree while that is being stopped.
func (w *watch) mindAgent() {
	for fd := int32(agent); ; {
		order, look := Record{}, true
		if ready(fd, w.untilLook()) {
			b, err := readFull(agent, RecordSize)
			if err != nil {
				b, fd = Record{Kind: Kill}.Bytes(), -1
			}
			order = ParseRecord(b)
			look = order.Kind == Kill
		}
		w.step(order, look)
	}
}

// mindChildren takes in what becomes of the children, until the last has gone: then no descendant lives, and none can become
// a child.
func (w *watch) mindChildren() {
	w.step(Record{}, false) // an order may have come before there was any
	for awaitChild(syscall.WEXITED | syscall.WSTOPPED | syscall.WCONTINUED) {
		w.step(Record{}, false)
	}
	for awaitChild(syscall.WEXITED | syscall.WALL) { // the sentinel is still there
		w.step(Record{}, false)
	}
}

// step obeys order, if it is one, does what is to be done then, and ends this process when that is all. look is as for
// advance.
func (w *watch) step(order Record, look bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if order.Kind != 0 {
		w.obey(order)
	}
	now := time.Now()
	if look {
		w.looked = now
	}
	if w.starting {
		return // start sees what the order was
	}
	if w.advance(now, look) {
		os.Exit(0)
	}
}

// untilLook is how long the tree need not be looked at.
func (w *watch) untilLook() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase == running {
		return never
	}
	return max(0, time.Until(w.looked.Add(w.phase.tick())))
}

// ready waits for something to read from fd, or for the other end to close, and reports whether it came within d. A
// negative fd has nothing to say.
func ready(fd int32, d time.Duration) bool {
	const in = 1
	asked := struct {
		fd              int32
		events, revents int16
	}{fd: fd, events: in}
	var limit *syscall.Timespec
	if d != never {
		t := syscall.NsecToTimespec(int64(d))
		limit = &t
	}
	n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&asked)), 1, uintptr(unsafe.Pointer(limit)), 0, 0, 0)
	return errno == 0 && n > 0
}

// awaitChild waits until a child has changed its state, which is left for reap to take, and reports whether there is any
// child of that kind. The options are waitid's.
func awaitChild(options int) bool {
	const all, left = 0, syscall.WNOWAIT
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, all, 0, 0, uintptr(options|left), 0, 0)
	return errno == 0 || errno == syscall.EINTR
}
