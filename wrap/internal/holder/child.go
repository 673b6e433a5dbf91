package holder

import (
	"syscall"
	"unsafe"
)

// All functions in files with this comment run in a process that has the memory of a Go program but
// neither its other threads nor a scheduler. They may only make raw system calls, and read and
// write memory m:
//
//   - nosplit, because the prologue of other functions may grow the stack or let the scheduler run;
//   - norace, because the race detector's functions lock;
//   - nocheckptr, because what it adds with -race may panic, and a panic allocates;
//   - no Go pointer is written to memory, which may call the garbage collector;
//   - no package sync/atomic: with -race it calls the race detector.
//
// All signals are blocked: the Go runtime would handle them.

//go:nosplit
//go:norace
//go:nocheckptr
func sys(number, a, b, c, d uintptr) (n uintptr, errno syscall.Errno) {
	n, _, errno = syscall.RawSyscall6(number, a, b, c, d, 0, 0)
	return n, errno
}

// run is the main function of the holder. It does not return.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) run() {
	for {
		m.wait()
		m.takeSignals()
		m.takeOrders()
		m.reap()
		m.look()
		if m.killing && !m.finished {
			m.killAll()
		}
	}
}

// wait waits until there is something to do.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) wait() {
	m.poll[0].fd, m.poll[0].events = int32(m.socket), pollIn
	if m.full {
		m.poll[0].events = pollOut
	}
	if m.orphan {
		m.poll[0].fd = -1
	}
	m.poll[1].fd, m.poll[1].events = int32(m.signals), pollIn
	m.poll[2].fd, m.poll[2].events, m.poll[2].revents = int32(m.owner), pollEnd, 0
	if m.disowned {
		m.poll[2].fd = -1
	}
	time := uintptr(unsafe.Pointer(&m.time))
	if wait := m.untilLook(); wait >= 0 {
		m.wakeBy = m.clock(clockBoottime) + wait
		m.time.Sec, m.time.Nsec = wait/second, wait%second
	} else {
		time, m.wakeBy = 0, 0
	}
	sys(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&m.poll)), 3, time, 0)
	if m.full {
		m.full = false
		m.send()
	}
	if m.poll[2].revents != 0 {
		m.disowned = true
		m.kill()
	}
}

const (
	pollIn, pollOut, pollEnd            = 1, 4, 0x2000 // POLLRDHUP
	clockMonotonic, clockBoottime       = 1, 7
	second, millisecond           int64 = 1e9, 1e6
)

//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) clock(id uintptr) int64 {
	sys(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&m.time)), 0, 0)
	return m.time.Sec*second + m.time.Nsec
}

// takeSignals reports the signals that this process has received. SIGCHLD only wakes it.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) takeSignals() {
	for {
		n, errno := sys(syscall.SYS_READ, m.signals, uintptr(unsafe.Pointer(&m.info)), 128, 0)
		if errno != 0 || n != 128 {
			break
		}
		if s := *(*uint32)(unsafe.Pointer(&m.info)); syscall.Signal(s) != syscall.SIGCHLD && !m.full {
			m.report(Received, 0, int64(s), 0, 0)
		}
	}
}

// report sends a Record to the agent. If there is no room, it is sent later, and until then m is
// full: neither are orders taken nor children reaped, so that each of them can be reported.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) report(k Kind, index uintptr, a, b, c int64) {
	m.out.Kind, m.out.Index, m.out.A, m.out.B, m.out.C = k, int(index), a, b, c
	m.send()
}

//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) send() {
	if m.orphan {
		return
	}
	const flags = syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL
	_, errno := sys(syscall.SYS_SENDTO, m.socket, uintptr(unsafe.Pointer(&m.out)),
		unsafe.Sizeof(m.out), flags)
	m.full = errno == syscall.EAGAIN
}

// takeOrders carries out what the agent has ordered, and Kill when it has ended.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) takeOrders() {
	for !m.full && !m.orphan {
		n, errno := sys(syscall.SYS_RECVFROM, m.socket, uintptr(unsafe.Pointer(&m.in)),
			unsafe.Sizeof(m.in), syscall.MSG_DONTWAIT)
		switch {
		case errno == syscall.EAGAIN, errno == syscall.EINTR:
			return
		case errno != 0 || n != unsafe.Sizeof(m.in):
			m.orphan = true
			m.kill()
			return
		}
		switch i := uintptr(m.in.Index); m.in.Kind {
		case Start:
			if !m.finish { // the agent may not know yet that everything is to end
				m.start(i)
			}
		case Signal:
			m.signal(uintptr(m.in.A), uintptr(m.in.B), m.in.C)
		case Drop:
			m.drop(i)
		case Finish:
			m.end()
		case Kill:
			m.kill()
		}
	}
}

// end begins to wait for the end of all children.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) end() {
	m.finish = true
	m.closeStreams()
}

// kill begins to kill everything.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) kill() {
	m.end()
	if !m.killing {
		m.killing, m.killBy = true, m.clock(clockBoottime)+killWait
	}
}

// signal sends a signal to a child, which has not been reaped, so that its pid is its own.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) signal(pid, signal uintptr, flags int64) {
	const options = syscall.WEXITED | syscall.WNOHANG | syscall.WNOWAIT
	const pPid = 1
	pidOf := (*int32)(unsafe.Pointer(&m.info[12])) // si_pid of a child that has ended
	*pidOf = 0
	_, errno := sys(syscall.SYS_WAITID, pPid, pid, uintptr(unsafe.Pointer(&m.info)), options)
	if errno != 0 || *pidOf != 0 {
		return
	}
	if i := m.find(pid); i != none && flags&End != 0 {
		m.slot(i).signalled = true
	}
	if flags&Group != 0 {
		pid = -pid
	}
	sys(syscall.SYS_KILL, pid, signal, 0, 0) // EPERM: it runs as another user
}

// find is the index of the worker with this pid.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) find(pid uintptr) uintptr {
	for i := uintptr(0); i < m.count; i++ {
		if m.slot(i).pid == pid {
			return i
		}
	}
	return none
}

// reap reports the changes of workers and reaps all children that have ended.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) reap() {
	const options = syscall.WNOHANG | syscall.WUNTRACED | syscall.WCONTINUED
	status := (*int32)(unsafe.Pointer(&m.info))
	for !m.full {
		pid, errno := sys(syscall.SYS_WAIT4, none, uintptr(unsafe.Pointer(status)), options, 0)
		switch {
		case errno == syscall.EINTR:
		case errno != 0: // ECHILD
			if m.finish && !m.full {
				m.exit(false)
			}
			return
		case pid == 0:
			return
		default:
			if i := m.find(pid); i != none {
				m.changed(i, *status)
			}
		}
	}
}

// changed reports the change of a worker's status (wait(2)).
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) changed(i uintptr, status int32) {
	const stopped, continued = 0x7f, 0xffff
	w := m.slot(i)
	if w.suspended {
		m.asleep--
	}
	w.suspended = status&0xff == stopped
	switch {
	case w.suspended:
		m.asleep++
		stopStarted(m, uintptr(status>>8&0xff))
		m.report(Suspended, i, int64(status>>8&0xff), 0, 0)
	case status == continued:
		m.resumed, m.stop = m.clock(clockBoottime), 0
		m.report(Continued, i, 0, 0, 0)
	default:
		w.pid = 0
		m.live--
		signalled := int64(0)
		if w.signalled {
			signalled = 1
		}
		m.report(Ended, i, int64(status), m.clock(clockMonotonic), signalled)
	}
}

// exit ends the holder, which has no children but survivors. Without any it waits before until the
// agent has copied what the workers wrote, and has ordered Drop for each log, or has ended.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) exit(survivors bool) {
	if !m.finished && !m.orphan {
		m.report(Finished, 0, 0, 0, 0)
		m.finished = !m.full
	}
	logs := false
	for i := uintptr(0); i < m.count; i++ {
		logs = logs || m.slot(i).log != none
		if m.orphan {
			m.drain(m.slot(i))
		}
	}
	if m.orphan || m.finished && (survivors || !logs) {
		sys(syscall.SYS_EXIT_GROUP, 0, 0, 0, 0)
	}
}
