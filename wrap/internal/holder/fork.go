//go:build !execholder

package holder

import (
	"runtime"
	"syscall"
)

// Forked tells whether the holder is a fork of the agent. The build tag execholder replaces this
// file by exec.go.
const Forked = true

// fork forks this process without exec, and returns the pid of the holder.
func (h *holder) fork() (pid int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all := ^uint64(0)
	setSignalMask(&all, &h.starter.mask)
	mask := h.starter.mask
	n, errno := h.clone()
	setSignalMask(&mask, nil)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// clone forks this process. All signals are blocked.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) clone() (pid uintptr, errno syscall.Errno) {
	h.own.advise(wipeOnFork)
	pid, errno = sys(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0)
	if errno == 0 && pid == 0 {
		h.begin()
		h.run()
	}
	h.own.advise(keepOnFork)
	return pid, errno
}

// open opens signalfd(2). See child.go for what this function may do, and the next one.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (s *signals) open() { s.file = signalFile() }

//go:nosplit
//go:norace
//go:nocheckptr
func block(number, a, b, c uintptr) { sys(number, a, b, c, 0) }

// mapShared returns memory that a fork shares.
func mapShared(size int) ([]byte, error) { return mapAnonymous(size, syscall.MAP_SHARED) }

// mapPrivate returns memory of which a fork has a copy.
func mapPrivate(size int) ([]byte, error) { return mapAnonymous(size, syscall.MAP_PRIVATE) }

func mapAnonymous(size, flags int) ([]byte, error) {
	const access = syscall.PROT_READ | syscall.PROT_WRITE
	return syscall.Mmap(-1, 0, size, access, flags|syscall.MAP_ANONYMOUS)
}

func unmap(memory []byte) { _ = syscall.Munmap(memory) }
