package watchdog

import (
	"syscall"
	"unsafe"

	"rdzv/internal/procfs"
)

// dumpAll sends SIGABRT to every live worker that catches it, and reports whether there was one.
func (w *watch) dumpAll() bool {
	any := false
	for i := range w.workers {
		if w.workers[i].pid != 0 && w.dump(i) {
			w.wake(i)
			any = true
		}
	}
	return any
}

// dumpDeaf sends SIGABRT to every live worker that catches it and ignores SIGTERM. It passes for stopped.
func (w *watch) dumpDeaf() {
	for i := range w.workers {
		e := &w.workers[i]
		if e.pid == 0 {
			continue
		}
		sets, _ := procfs.ReadSignals(procfs.System, e.pid)
		if sets.Ignored.Has(syscall.SIGTERM) && w.dump(i) {
			e.told = true
			w.wake(i)
		}
	}
}

// dump makes worker i print its stacks, if it catches SIGABRT as Python's faulthandler does, without leaving a core.
// It reports whether it has sent the signal.
func (w *watch) dump(i int) bool {
	pid := w.workers[i].pid
	if w.workers[i].dumped {
		return false
	}
	sets, _ := procfs.ReadSignals(procfs.System, pid)
	if !sets.Caught.Has(syscall.SIGABRT) || !forbidCore(pid) {
		return false
	}
	w.workers[i].dumped = true
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
