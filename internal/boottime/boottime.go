// Package boottime reads the clock with which agents and runners measure how long the store has
// not answered.
package boottime

import (
	"syscall"
	"time"
	"unsafe"
)

// Now is the time of CLOCK_BOOTTIME (clock_gettime(2)), which all processes of a machine share. It
// also counts the time in which a process was stopped or the machine was suspended.
func Now() time.Duration {
	const clockBoottime = 7
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}
