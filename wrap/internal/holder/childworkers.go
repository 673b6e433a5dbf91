package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

// workers are those that the holder starts, and what it knows of them.
type workers struct {
	list     []slot
	channel  *channel
	children children

	live      uintptr // how many run
	suspended uintptr // of these, how many are suspended
	continued int64   // when a child was continued
	stop      stop
	info      siginfo
}

type slot struct {
	index   int
	program program
	output  output

	pid       uintptr // 0 if it does not run
	began     int64   // shortly before its start
	suspended bool
	signalled bool // with End
}

// at is the worker with this index, without a bounds check.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) at(index int) *slot {
	first := unsafe.Pointer(unsafe.SliceData(w.list))
	return (*slot)(unsafe.Add(first, uintptr(index)*unsafe.Sizeof(slot{})))
}

// find is the worker with this pid; nil is none.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) find(pid uintptr) *slot {
	for i := range w.list {
		if s := w.at(i); s.pid == pid {
			return s
		}
	}
	return nil
}

// running tells whether a worker can do something or, when all have ended, an orphan can. Orphans
// do not count while all workers are suspended: the tree is.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) running() bool {
	return w.suspended < w.live || w.live == 0 && w.children.run()
}

//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) started(s *slot, pid uintptr, began int64) {
	s.pid, s.began, s.suspended, s.signalled = pid, began, false, false
	w.live++
	w.children.some = true
	if w.stop.mayMiss(began) {
		sys(syscall.SYS_KILL, pid, uintptr(w.stop.signal), 0, 0)
	}
}

// What the low byte of a status, or all of it, is when a child was stopped or continued (wait(2)).
const stopped, continued = 0x7f, 0xffff

// reap reports the changes of workers and reaps all children that have ended. It tells whether
// there are no children.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) reap() bool {
	const options = syscall.WNOHANG | syscall.WUNTRACED | syscall.WCONTINUED
	for !w.channel.full {
		var status int32
		pid, errno := sys(syscall.SYS_WAIT4, none, uintptr(unsafe.Pointer(&status)), options, 0)
		switch {
		case errno == syscall.EINTR:
		case errno != 0: // ECHILD
			w.children.some = false
			return true
		case pid == 0:
			w.children.some = true
			return false
		default:
			if s := w.find(pid); s != nil {
				w.changed(s, status)
			} else {
				w.orphanChanged(pid, status)
			}
		}
	}
	return false
}

// changed reports the change of a worker's status (wait(2)).
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) changed(s *slot, status int32) {
	if s.suspended {
		w.suspended--
	}
	s.suspended = status&0xff == stopped
	switch {
	case s.suspended:
		w.suspended++
		signal := syscall.Signal(status >> 8 & 0xff)
		w.stopStarted(signal)
		w.channel.report(Suspended, s.index, int64(signal), 0, 0)
	case status == continued:
		w.continued, w.stop.signal = clock(clockBoottime), 0
		w.channel.report(Continued, s.index, 0, 0, 0)
	default:
		w.ended(s, status)
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) ended(s *slot, status int32) {
	s.pid = 0
	w.live--
	signalled := int64(0)
	if s.signalled {
		signalled = 1
	}
	w.channel.report(Ended, s.index, int64(status), clock(clockMonotonic), signalled)
}

// haveLogs tells whether the agent may be copying the output of a worker.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) haveLogs() bool {
	for i := range w.list {
		if w.at(i).output.log != none {
			return true
		}
	}
	return false
}

// drain writes to the logs what the agent, which has ended, has not.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) drain(b *buffer) {
	for i := range w.list {
		w.at(i).output.drain(b)
	}
}
