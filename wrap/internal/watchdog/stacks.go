package watchdog

import (
	"syscall"
	"unsafe"

	"rdzv/internal/procfs"
)

// dumpStacks makes every live worker print its stacks that can, or that can and ignores SIGTERM. It passes for stopped.
// dumpStacks reports whether there was one.
func (w *watch) dumpStacks(ignoringTerm bool) (any bool) {
	for i := range w.workers {
		if e := &w.workers[i]; e.pid != 0 && w.dump(i, ignoringTerm) {
			any, e.told = true, true
			w.wake(i)
		}
	}
	return any
}

// dump makes worker i print its stacks without leaving a core, if it catches SIGABRT as Python's faulthandler does and,
// with ignoringTerm, if it ignores SIGTERM. It reports whether it has sent the signal.
func (w *watch) dump(i int, ignoringTerm bool) bool {
	e := &w.workers[i]
	sets, _ := procfs.ReadSignals(procfs.System, e.pid)
	if e.dumped || ignoringTerm && !sets.Ignored.Has(syscall.SIGTERM) ||
		!sets.Caught.Has(syscall.SIGABRT) || !forbidCore(e.pid) {
		return false
	}
	e.dumped = true
	w.send(i, syscall.SIGABRT)
	return true
}

// forbidCore keeps pid from leaving a core: after its stacks, faulthandler lets SIGABRT take its course.
//
// The limit becomes 1 byte and not 0: a core_pattern that pipes into a program takes no notice of 0, but of 1 (core(5);
// do_coredump in the kernel). Where the hard limit is 0 the limit stays 0.
func forbidCore(pid int) bool {
	var limit syscall.Rlimit
	if prlimit(pid, nil, &limit) != 0 {
		return false
	}
	limit.Cur = min(1, limit.Max)
	return prlimit(pid, &limit, nil) == 0
}

func prlimit(pid int, set, get *syscall.Rlimit) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_CORE,
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), 0, 0)
	return errno
}
