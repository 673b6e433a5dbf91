package wrap

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// starter starts workers, one after another, on the main thread of the runner: the workers are
// killed when that thread ends (PR_SET_PDEATHSIG). A start may hang in the kernel, as when the
// program is on a file system that does not respond. Go then runs on, on its other processors,
// unless it stops the world: therefore nothing is collected while a worker is being started.
type starter struct {
	requests chan startRequest
	results  chan startResult
}

type startRequest struct {
	attempt *attempt
	worker  int
}

type startResult struct {
	worker int
	pid    int
	at     time.Time // shortly before its start
	err    error
}

func newStarter() *starter {
	// One start is ordered at a time, so that nothing waits for a start that hangs.
	return &starter{requests: make(chan startRequest, 1), results: make(chan startResult, 1)}
}

// run starts what is ordered. It does not return.
func (s *starter) run() {
	for q := range s.requests {
		unbind := bindThread(q.attempt.tree.Workers[q.worker].Bind)
		r := startResult{worker: q.worker, at: time.Now()}
		r.pid, r.err = q.attempt.fork(q.worker)
		unbind()
		s.results <- r
	}
}

// fork starts a worker. It returns when that has executed its program, or has ended.
func (a *attempt) fork(i int) (pid int, err error) {
	w, s := &a.tree.Workers[i], &a.states[i]
	attr := &syscall.ProcAttr{Dir: w.Dir, Env: w.Env, Sys: &syscall.SysProcAttr{
		Setpgid: true, Pdeathsig: syscall.SIGKILL,
	}}
	for _, fd := range s.streams {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	if a.terminal {
		// The runner is in this group, too, if its pid namespace has no number for it.
		attr.Sys.Pgid, attr.Sys.Setpgid = a.group, a.group != 0
	}
	args := w.Args
	if len(args) == 0 {
		args = []string{w.Path}
	}
	pid, err = syscall.ForkExec(w.Path, args, attr)
	if err == syscall.EPERM && a.terminal { // the group has ended meanwhile
		attr.Sys.Pgid = 0
		pid, err = syscall.ForkExec(w.Path, args, attr)
	}
	return pid, err
}

// bindThread binds this thread, and thereby what it starts, until unbind. What the kernel refuses
// is left as it is: such a worker is slower, but right.
func bindThread(b Binding) (unbind func()) {
	var cpus unix.CPUSet
	var memory memoryPolicy
	unbindCPUs := len(b.CPUs) > 0 && unix.SchedGetaffinity(0, &cpus) == nil
	unbindMemory := b.Node != nil && memory.get() == nil
	if unbindCPUs {
		var set unix.CPUSet
		for _, cpu := range b.CPUs {
			set.Set(cpu)
		}
		_ = unix.SchedSetaffinity(0, &set)
	}
	if unbindMemory {
		preferred := memoryPolicy{mode: preferredPolicy}
		preferred.add(*b.Node)
		preferred.set()
	}
	return func() {
		if unbindCPUs {
			_ = unix.SchedSetaffinity(0, &cpus)
		}
		if unbindMemory {
			memory.set()
		}
	}
}

// memoryPolicy is that of a thread (set_mempolicy(2)).
type memoryPolicy struct {
	mode  int32
	nodes [maxNodes / 64]uint64
}

const (
	preferredPolicy = 1
	maxNodes        = 1024 // the kernel's MAX_NUMNODES is at most that
)

func (p *memoryPolicy) add(node int) {
	if node < maxNodes {
		p.nodes[node/64] |= 1 << (node % 64)
	}
}

func (p *memoryPolicy) get() error {
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&p.mode)),
		uintptr(unsafe.Pointer(&p.nodes)), maxNodes+1, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (p *memoryPolicy) set() {
	_, _, _ = unix.Syscall(unix.SYS_SET_MEMPOLICY, uintptr(p.mode),
		uintptr(unsafe.Pointer(&p.nodes)), maxNodes+1)
}
