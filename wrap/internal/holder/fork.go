package holder

import (
	"runtime"
	"syscall"
	"unsafe"
)

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

// setSignalMask sets the signals that this thread blocks.
func setSignalMask(mask, before *uint64) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(mask)),
		uintptr(unsafe.Pointer(before)), sigsetSize, 0, 0)
}
