package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

// buffer is for what is larger than the stack of a function without checks of the stack.
type buffer struct {
	bytes [bufferSize]byte
}

const bufferSize = 4096

//go:nosplit
//go:norace
//go:nocheckptr
func (b *buffer) address() uintptr { return uintptr(unsafe.Pointer(b)) }

// byte is the n-th byte, without a bounds check.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (b *buffer) byte(n uintptr) byte { return *(*byte)(unsafe.Add(unsafe.Pointer(b), n)) }

// read reads the begin of a file, and leaves room after it.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (b *buffer) read(path uintptr) (n uintptr) {
	const here = ^uintptr(99) // AT_FDCWD
	fd, errno := sys(syscall.SYS_OPENAT, here, path, syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return none
	}
	n, errno = sys(syscall.SYS_PREAD64, fd, b.address(), bufferSize-8, 0)
	sys(syscall.SYS_CLOSE, fd, 0, 0, 0)
	if errno != 0 {
		return none
	}
	return n
}

const maxNodes = 1024

// node returns the address of a set of memory nodes (set_mempolicy(2)) with one of them.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (b *buffer) node(node uintptr) uintptr {
	nodes := (*[maxNodes / 64]uint64)(unsafe.Pointer(b))
	*nodes = [maxNodes / 64]uint64{}
	nodes[node/64%uintptr(len(nodes))] = 1 << (node % 64)
	return b.address()
}
