package holder

import (
	"syscall"
	"unsafe"
)

// All functions in files with this comment run in a process that has the memory of a Go program but
// neither its other threads nor a scheduler. They may only make raw system calls, and read and
// write the memory of the holder and their stack:
//
//   - nosplit, because the prologue of other functions may grow the stack or let the scheduler run;
//   - norace, because the race detector's functions lock;
//   - nocheckptr, because what it adds with -race may panic, and a panic allocates;
//   - no index that needs a bounds check, because that may panic;
//   - no Go pointer is written to memory, which may call the garbage collector: all those in the
//     memory of the holder were written by the agent;
//   - no package variable, because its memory is given up (ownMemory);
//   - no package sync/atomic: with -race it calls the race detector.
//
// child_test.go checks what the compiler makes of them. All signals are blocked: the Go runtime
// would handle them.

//go:nosplit
//go:norace
//go:nocheckptr
func sys(number, a, b, c, d uintptr) (n uintptr, errno syscall.Errno) {
	n, _, errno = syscall.RawSyscall6(number, a, b, c, d, 0, 0)
	return n, errno
}

// none is no descriptor, or nothing else.
const none = ^uintptr(0)

// span is a part of memory.
type span struct{ at, size uintptr }

const (
	clockMonotonic, clockBoottime       = 1, 7
	second, millisecond           int64 = 1e9, 1e6
)

//go:nosplit
//go:norace
//go:nocheckptr
func clock(id uintptr) int64 {
	var time syscall.Timespec
	sys(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&time)), 0, 0)
	return time.Sec*second + time.Nsec
}

// never is how long a holder waits that has nothing to look at.
const never = 1<<63 - 1

type pollFD struct {
	fd              int32
	events, revents int16
}

const pollIn, pollOut, pollEnd = 1, 4, 0x2000 // POLLRDHUP
