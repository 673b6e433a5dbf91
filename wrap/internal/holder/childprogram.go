package holder

import "syscall"

// See child.go for what the functions of this file may do.

// program is a WorkerSpec in the form that system calls take. path, dir, argv and env are addresses
// of text that ends with 0, or of lists of such addresses that end with 0.
type program struct {
	path, dir, argv, env uintptr
	files                [3]uintptr // its streams; none is /dev/null
	group                uintptr    // its process group; 0 is its own, none is that of the holder
	cpus                 span       // its affinity; empty leaves it as it is
	node                 uintptr    // preferred memory node; none leaves the policy as it is
}

// place sets the process group, and where the program and its memory are. What the kernel refuses
// of that stays as it is: such a worker is slower, but right.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (p *program) place(b *buffer) {
	const preferred = 1
	if p.group != none {
		sys(syscall.SYS_SETPGID, 0, p.group, 0, 0)
	}
	if p.cpus.size > 0 {
		sys(syscall.SYS_SCHED_SETAFFINITY, 0, p.cpus.size, p.cpus.at, 0)
	}
	if p.node < maxNodes {
		sys(syscall.SYS_SET_MEMPOLICY, preferred, b.node(p.node), maxNodes+1, 0)
	}
}

// enter changes the working directory.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (p *program) enter() (errno syscall.Errno) {
	if p.dir != 0 {
		_, errno = sys(syscall.SYS_CHDIR, p.dir, 0, 0, 0)
	}
	return errno
}

//go:nosplit
//go:norace
//go:nocheckptr
func (p *program) exec() syscall.Errno {
	_, errno := sys(syscall.SYS_EXECVE, p.path, p.argv, p.env, 0)
	return errno
}
