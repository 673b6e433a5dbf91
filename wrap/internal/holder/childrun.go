package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

// holder is all that a holder knows. It is outside of Go's heap, and followed by what it refers to.
// The agent makes it; the holder alone has it afterwards. Its pointers lead to this memory, or to
// what processes share: the holder does not have the agent's heap.
type holder struct {
	own       ownMemory
	move      bool // it makes itself a process group
	inherited inherited
	channel   channel
	signals   signals
	owner     uintptr // socket to the owner of the tree; none is none
	held      held
	workers   workers
	starter   starter
	watch     watch
	lease     lease
	killer    killer
	buffer    buffer

	finishing bool // no worker will be started
	finished  bool // Finished has been sent
	poll      [3]pollFD
	time      syscall.Timespec
}

// run is the main function of the holder. It does not return.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) run() {
	for {
		h.wait()
		h.takeSignals()
		h.takeOrders()
		if h.workers.reap() && h.finishing {
			h.exit(false)
		}
		h.look()
		if h.killing() && h.killer.all() && !h.channel.full {
			h.exit(true)
		}
	}
}

// wait waits until there is something to do.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) wait() {
	h.poll[0], h.poll[1] = h.channel.poll(), h.signals.poll()
	h.poll[2] = pollFD{fd: int32(h.owner), events: pollEnd}
	wait, limit := h.untilLook(), uintptr(0)
	if wait != never {
		limit = uintptr(unsafe.Pointer(&h.time))
		h.time.Sec, h.time.Nsec = wait/second, wait%second
	}
	h.lease.sleep(wait)
	block(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&h.poll)), uintptr(len(h.poll)), limit)
	h.channel.resend()
	if h.poll[2].revents != 0 {
		h.owner = none
		h.kill()
	}
}

// untilLook is when look or killer.all has to be called next.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) untilLook() int64 {
	switch {
	case h.killing():
		return killPause
	case !h.workers.children.some:
		return never
	}
	now := clock(clockBoottime)
	return min(h.watch.untilLook(now), h.lease.untilLook(now))
}

// takeSignals reports the signals that this process has received. SIGCHLD only wakes it.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) takeSignals() {
	for s := h.signals.next(); s != 0; s = h.signals.next() {
		if s != syscall.SIGCHLD && !h.channel.full {
			h.channel.report(Received, 0, int64(s), 0, 0)
		}
	}
}

// takeOrders carries out what the agent has ordered, and Kill when it has ended.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) takeOrders() {
	for h.channel.receive() {
		h.carryOut(&h.channel.in)
	}
	if h.channel.ended {
		h.kill()
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) carryOut(order *Record) {
	switch order.Kind {
	case Start:
		if !h.finishing { // the agent may not know yet that everything is to end
			h.start(h.workers.at(order.Index))
		}
	case Signal:
		h.workers.signal(uintptr(order.A), syscall.Signal(order.B), order.C)
	case Drop:
		h.workers.at(order.Index).output.drop()
	case Finish:
		h.finish()
	case Kill:
		h.kill()
	}
}

// start starts a worker and reports that.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) start(s *slot) {
	began := clock(clockMonotonic)
	pid, errno := h.starter.start(&s.program)
	if errno != 0 { // reap reaps the child
		h.channel.report(Refused, s.index, int64(errno), 0, 0)
		return
	}
	h.workers.started(s, pid, began)
	h.channel.report(Started, s.index, int64(pid), began, 0)
}
