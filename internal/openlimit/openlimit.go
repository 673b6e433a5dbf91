// Package openlimit knows the limit of open files with which this process was started. Package
// syscall raises the soft limit when it is initialised and tells nobody but the processes that it
// starts itself what it was.
//
// Go initialises packages in the order of their import paths as soon as all their imports are
// initialised. This package imports nothing and sorts before sync, which syscall needs.
package openlimit

import "unsafe"

// limit is the kernel's struct rlimit64.
type limit struct{ soft, hard uint64 }

var initial limit

func init() {
	const resource = 7 // RLIMIT_NOFILE
	rawSyscall6(prlimit64, 0, resource, 0, uintptr(unsafe.Pointer(&initial)), 0, 0)
}

// Soft is the soft limit at the start of this process; 0 if it is not known.
func Soft() uint64 { return initial.soft }

// rawSyscall6 is syscall.RawSyscall6, which needs no initialisation.
//
//go:linkname rawSyscall6 syscall.RawSyscall6
func rawSyscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2, errno uintptr)
