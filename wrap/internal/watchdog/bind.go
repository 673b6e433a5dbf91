package watchdog

import (
	"syscall"
	"unsafe"
)

// AnyNode in Worker.Node leaves the memory policy as it is.
const AnyNode = -1

// A worker inherits the CPU affinity and the memory policy of the thread that forks it: exec keeps
// both, so that all memory of the program is allocated under them.

// bound calls fork while this thread has the affinity and memory policy for s. What the kernel
// refuses stays as it is: workers without a binding are slower, but right.
func bound(s Worker, fork func() (int, error)) (int, error) {
	if len(s.CPUs) > 0 {
		var before, mask cpuMask
		if before.get() == 0 {
			mask.add(s.CPUs)
			mask.set()
			defer before.set()
		}
	}
	if s.Node != AnyNode {
		var before memoryPolicy
		if before.get() == 0 {
			preferring(s.Node).set()
			defer before.set()
		}
	}
	return fork()
}

// cpuMask is the kernel's set of CPUs. Linux supports at most 8192 (NR_CPUS on x86 and arm).
type cpuMask [8192 / 64]uint64

func (m *cpuMask) add(cpus []int) {
	for _, cpu := range cpus {
		if cpu >= 0 && cpu/64 < len(m) {
			m[cpu/64] |= 1 << (cpu % 64)
		}
	}
}

func (m *cpuMask) get() syscall.Errno {
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(*m),
		uintptr(unsafe.Pointer(m)))
	return errno
}

func (m *cpuMask) set() {
	syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(*m),
		uintptr(unsafe.Pointer(m)))
}

// memoryPolicy is the memory policy of a thread, see set_mempolicy(2).
type memoryPolicy struct {
	mode  int32
	nodes [maxNodes / 64]uint64
}

const (
	maxNodes      = 1024 // MAX_NUMNODES of the kernel on x86; others have fewer
	mpolPreferred = 1
)

// preferring is the policy that takes memory from node while it has some.
func preferring(node int) *memoryPolicy {
	p := &memoryPolicy{mode: mpolPreferred}
	if node >= 0 && node < maxNodes {
		p.nodes[node/64] = 1 << (node % 64)
	}
	return p
}

func (p *memoryPolicy) get() syscall.Errno {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&p.mode)),
		uintptr(unsafe.Pointer(&p.nodes)), maxNodes+1, 0, 0, 0)
	return errno
}

// The kernel reads one bit less than the number it is given.
func (p *memoryPolicy) set() {
	syscall.RawSyscall(syscall.SYS_SET_MEMPOLICY, uintptr(p.mode),
		uintptr(unsafe.Pointer(&p.nodes)), maxNodes+1)
}
