package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

// begin makes this process, a fork of the agent, a holder.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) begin() {
	self, _ := sys(syscall.SYS_GETPID, 0, 0, 0, 0)
	m.self = self
	if m.move != 0 {
		sys(syscall.SYS_SETPGID, 0, 0, 0, 0)
	}
	const childSubreaper, setName = 36, 15
	sys(syscall.SYS_PRCTL, childSubreaper, 1, 0, 0)
	sys(syscall.SYS_PRCTL, setName, m.name, 0, 0)
	m.closeFiles()
	m.resetSignals()
}

// closeFiles closes all descriptors of the agent but those that are kept, and those that every
// child of the agent gets.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) closeFiles() {
	for i := uintptr(0); i < m.kept.size; i++ {
		sys(syscall.SYS_FCNTL, m.word(m.kept, i), syscall.F_SETFD, 0, 0)
	}
	for fd := uintptr(3); fd <= m.highest; fd++ {
		flags, errno := sys(syscall.SYS_FCNTL, fd, syscall.F_GETFD, 0, 0)
		if errno == 0 && flags&syscall.FD_CLOEXEC != 0 {
			sys(syscall.SYS_CLOSE, fd, 0, 0, 0)
		}
	}
	m.closeFrom(m.highest + 1)
	for i := uintptr(0); i < m.kept.size; i++ {
		sys(syscall.SYS_FCNTL, m.word(m.kept, i), syscall.F_SETFD, syscall.FD_CLOEXEC, 0)
	}
	for fd := uintptr(0); fd < 3; fd++ {
		sys(syscall.SYS_DUP3, m.null, fd, 0, 0)
	}
}

// closeFrom closes all descriptors from first on. The agent has got them since it has listed its
// descriptors.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) closeFrom(first uintptr) {
	const closeRange, all = 436, 1<<32 - 1 // Linux 5.9; the same number on all architectures
	const atOnce = 1024                    // hardly more since
	_, errno := sys(closeRange, first, all, 0, 0)
	for fd := first; errno != 0 && fd < first+atOnce; fd++ {
		sys(syscall.SYS_CLOSE, fd, 0, 0, 0)
	}
}

// resetSignals gives all signals that the Go runtime has caught their default action, as exec would
// do in the workers: between the end of blocking and exec nothing may be handled.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) resetSignals() {
	action := (*[8]uintptr)(unsafe.Pointer(&m.info)) // begins with the handler
	for s := uintptr(1); s <= 64; s++ {
		sys(syscall.SYS_RT_SIGACTION, s, 0, uintptr(unsafe.Pointer(action)), sigsetSize)
		if action[0] > ignoreHandler {
			*action = [8]uintptr{}
			sys(syscall.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(action)), 0, sigsetSize)
		}
	}
}

// ignoreHandler is SIG_IGN.
const ignoreHandler = 1

// sigsetSize is the size of the kernel's signal sets in bytes.
const sigsetSize = 8

// openSignals makes the descriptor for signals to this process.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) openSignals() {
	const flags = syscall.O_CLOEXEC | syscall.O_NONBLOCK
	*(*uint64)(unsafe.Pointer(&m.info)) = ^uint64(0)
	m.signals, _ = sys(syscall.SYS_SIGNALFD4, none, uintptr(unsafe.Pointer(&m.info)), sigsetSize,
		flags)
}

const wipeOnFork, keepOnFork = 18, 19 // Linux 4.14; the same numbers on all architectures

// advise gives advice (madvise(2)) for the agent's own memory, except for the stack of this thread.
//
// Before the fork it is wipeOnFork: the holder then has zeros there, and the agent need not copy
// each page that it changes. An older kernel refuses that; in any case the holder gives the memory
// up, so that no page exists twice.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) advise(advice uintptr) {
	room := 2 * m.page
	var here uintptr
	low := uintptr(unsafe.Pointer(&here))&^(m.page-1) - room
	high := low + 2*room + m.page
	for i := uintptr(0); i < m.writable.size; i += 2 {
		from, to := m.word(m.writable, i), m.word(m.writable, i+1)
		if from < high && low < to {
			m.adviseRange(from, low, advice)
			from = high
		}
		m.adviseRange(from, to, advice)
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) adviseRange(from, to, advice uintptr) {
	if from < to {
		sys(syscall.SYS_MADVISE, from, to-from, advice, 0)
	}
}

// overwriteArguments makes ps show the name of the holder, not the arguments of the agent.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) overwriteArguments() {
	for i := uintptr(0); i < m.arguments.size; i++ {
		c := byte(0)
		if i < uintptr(len(Name)) && i+1 < m.arguments.size {
			c = *(*byte)(at(m, m.name-m.base+i))
		}
		*(*byte)(at(m, m.arguments.at-m.base+i)) = c
	}
}
