package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

// signals are those that the holder receives. All are blocked.
type signals struct {
	file uintptr // of signalfd(2)
}

const (
	sigsetSize = 8 // the size of the kernel's signal sets in bytes
	setMask    = 2 // SIG_SETMASK
)

// signalFile is a descriptor of signalfd(2) for all signals.
//
//go:nosplit
//go:norace
//go:nocheckptr
func signalFile() uintptr {
	const flags = syscall.O_CLOEXEC | syscall.O_NONBLOCK
	all := ^uint64(0)
	fd, _ := sys(syscall.SYS_SIGNALFD4, none, uintptr(unsafe.Pointer(&all)), sigsetSize, flags)
	return fd
}

//go:nosplit
//go:norace
//go:nocheckptr
func (s *signals) poll() pollFD { return pollFD{fd: int32(s.file), events: pollIn} }

// next is a signal that this process has received; 0 is none.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (s *signals) next() syscall.Signal {
	var info struct { // signalfd_siginfo
		number uint32
		_      [124]byte
	}
	n, errno := sys(syscall.SYS_READ, s.file, uintptr(unsafe.Pointer(&info)), unsafe.Sizeof(info), 0)
	if errno != 0 || n != unsafe.Sizeof(info) {
		return 0
	}
	return syscall.Signal(info.number)
}

// sigaction is the struct that rt_sigaction(2) reads and writes.
type sigaction struct {
	handler uintptr
	_       [3]uintptr // flags, signals to block, and on most architectures a function
}

// The values of sigaction.handler that are no functions.
const defaultHandler, ignoreHandler = 0, 1

//go:nosplit
//go:norace
//go:nocheckptr
func (a *sigaction) get(s syscall.Signal) {
	sys(syscall.SYS_RT_SIGACTION, uintptr(s), 0, uintptr(unsafe.Pointer(a)), sigsetSize)
}

//go:nosplit
//go:norace
//go:nocheckptr
func (a *sigaction) set(s syscall.Signal) {
	sys(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(a)), 0, sigsetSize)
}

// resetHandlers gives all signals that the Go runtime has caught their default action, as exec
// would do in the workers: between the end of blocking and exec nothing may be handled.
//
//go:nosplit
//go:norace
//go:nocheckptr
func resetHandlers() {
	var a sigaction
	for s := syscall.Signal(1); s <= 64; s++ {
		if a.get(s); a.handler > ignoreHandler {
			a = sigaction{}
			a.set(s)
		}
	}
}

// forget forgets a signal of job control that this process has received, and which would stop it
// before exec: the holder would wait for that. See stop.
//
//go:nosplit
//go:norace
//go:nocheckptr
func forget(s syscall.Signal) {
	var a sigaction
	if a.get(s); a.handler == ignoreHandler {
		return
	}
	a.handler = ignoreHandler
	a.set(s)
	a.handler = defaultHandler
	a.set(s)
}
