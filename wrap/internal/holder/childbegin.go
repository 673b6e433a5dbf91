package holder

import "syscall"

// See child.go for what the functions of this file may do.

// begin makes this process a holder.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (h *holder) begin() {
	const childSubreaper = 36
	h.starter.holder, _ = sys(syscall.SYS_GETPID, 0, 0, 0, 0)
	if h.move {
		sys(syscall.SYS_SETPGID, 0, 0, 0, 0)
	}
	sys(syscall.SYS_PRCTL, childSubreaper, 1, 0, 0)
	h.own.rename()
	h.inherited.close()
	if Forked {
		resetHandlers()
	}
	h.signals.open()
	h.own.advise(syscall.MADV_DONTNEED)
	h.own.overwriteArguments()
}

// inherited are the descriptors of the agent.
type inherited struct {
	kept    []uintptr // what the holder uses
	null    uintptr   // /dev/null, one of these
	highest uintptr
}

// close closes all but those that are kept, and those that every child of the agent gets.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (i *inherited) close() {
	if Forked { // or else exec has done so
		i.flag(0)
		i.closeOthers()
	}
	i.flag(syscall.FD_CLOEXEC)
	for fd := uintptr(0); fd < 3; fd++ {
		sys(syscall.SYS_DUP3, i.null, fd, 0, 0)
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (i *inherited) closeOthers() {
	for fd := uintptr(3); fd <= i.highest; fd++ {
		flags, errno := sys(syscall.SYS_FCNTL, fd, syscall.F_GETFD, 0, 0)
		if errno == 0 && flags&syscall.FD_CLOEXEC != 0 {
			sys(syscall.SYS_CLOSE, fd, 0, 0, 0)
		}
	}
	closeFrom(i.highest + 1)
}

// flag sets the flags of those that are kept.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (i *inherited) flag(flags uintptr) {
	for _, fd := range i.kept {
		sys(syscall.SYS_FCNTL, fd, syscall.F_SETFD, flags, 0)
	}
}

// closeFrom closes all descriptors from first on. The agent has got them since it has listed its
// descriptors.
//
//go:nosplit
//go:norace
//go:nocheckptr
func closeFrom(first uintptr) {
	const closeRange, all = 436, 1<<32 - 1 // Linux 5.9; the same number on all architectures
	const atOnce = 1024                    // hardly more since
	_, errno := sys(closeRange, first, all, 0, 0)
	for fd := first; errno != 0 && fd < first+atOnce; fd++ {
		sys(syscall.SYS_CLOSE, fd, 0, 0, 0)
	}
}
