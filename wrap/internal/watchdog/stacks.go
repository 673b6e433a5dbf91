package watchdog

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// dumpAll sends SIGABRT to every live worker that catches it, and reports whether there was one.
func (w *watch) dumpAll() bool {
	any := false
	for i := range w.workers {
		if w.workers[i].pid != 0 && w.dump(i) {
			any = true
		}
	}
	return any
}

// dump makes worker i print its stacks, if it catches SIGABRT as Python's faulthandler does, without leaving a core.
// It reports whether it has sent the signal.
func (w *watch) dump(i int) bool {
	pid := w.workers[i].pid
	if w.workers[i].dumped {
		return false
	}
	if caught := signalSet(pid, "SigCgt:"); caught&(1<<(syscall.SIGABRT-1)) == 0 || !forbidCore(pid) {
		return false
	}
	w.workers[i].dumped = true
	w.send(i, syscall.SIGABRT)
	w.wake(i)
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

// ignoredSignals is the set of signals that this process ignores; bit n-1 stands for signal n.
func ignoredSignals() uint64 {
	return signalSet(os.Getpid(), "SigIgn:")
}

// signalSet reads one of the signal sets in /proc/PID/status; it is empty when that cannot be read.
func signalSet(pid int, name string) uint64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	return signalSetIn(string(text), name)
}

func signalSetIn(text, name string) uint64 {
	for line := range lines(text) {
		if len(line) > len(name) && line[:len(name)] == name {
			set, _ := strconv.ParseUint(line[len(name)+1:], 16, 64)
			return set
		}
	}
	return 0
}

// lines yields the lines of text without their ends.
func lines(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for from, i := 0, 0; i < len(text); i++ {
			if text[i] == '\n' {
				if !yield(text[from:i]) {
					return
				}
				from = i + 1
			}
		}
	}
}
