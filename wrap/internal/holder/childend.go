package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

// look ends the tree if the agent is stopped for too long, or if its lease is over and the agent
// does not end it.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) look() {
	if h.lease.told && !h.workers.children.some { // all have died of SIGTERM
		h.watch.endStopped()
	}
	if h.killer.begun || !h.workers.children.some {
		return
	}
	now := clock(clockBoottime)
	if h.lease.wokeLate(now) && !h.channel.full {
		h.channel.report(Paused, 0, 0, 0, 0)
	}
	h.watch.look(now)
	if late := h.lease.late(now); late >= 0 {
		h.endLate(late)
	}
}

// endLate ends the tree, whose lease is over since so long. If the agent has ordered to finish it
// has sent SIGTERM to orphans.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) endLate(late int64) {
	if !h.lease.told {
		h.lease.told = true
		h.workers.terminate()
		h.channel.reportBehind(LeaseOver)
	}
	if !h.finishing {
		h.workers.terminateOrphans()
	}
	if late >= h.lease.shared.LeaseGrace {
		h.watch.endStopped()
		h.kill()
	}
}

// finish begins to wait for the end of all children.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) finish() {
	h.finishing = true
	h.starter.release()
}

// kill begins to kill everything.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) kill() {
	h.finish()
	h.killer.begun = true
}

// killing tells whether there may be something left to kill.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) killing() bool { return h.killer.begun && !h.finished }

// exit ends the holder, which has no children but survivors. Without any it waits before until the
// agent has copied what the workers wrote, and has ordered Drop for each log, or has ended.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) exit(survivors bool) {
	if h.channel.ended {
		h.workers.drain(&h.buffer)
		h.held.end()
		sys(syscall.SYS_EXIT_GROUP, 0, 0, 0, 0)
	}
	if !h.finished {
		h.channel.report(Finished, 0, 0, 0, 0)
		h.finished = !h.channel.full
	}
	if h.finished && (survivors || !h.workers.haveLogs()) {
		sys(syscall.SYS_EXIT_GROUP, 0, 0, 0, 0)
	}
}

// held is a Held. socket is none if there is none.
type held struct{ socket, others, own uintptr }

const heldWait = second

// end ends the stream if nobody else has it. The agent may be about to close its files.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *held) end() {
	if h.socket == none {
		return
	}
	sys(syscall.SYS_CLOSE, h.own, 0, 0, 0)
	others := pollFD{fd: int32(h.others)}
	limit := syscall.Timespec{Sec: heldWait / second}
	sys(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&others)), 1, uintptr(unsafe.Pointer(&limit)), 0)
	if others.revents != 0 {
		sys(syscall.SYS_SHUTDOWN, h.socket, syscall.SHUT_WR, 0, 0)
	}
}
