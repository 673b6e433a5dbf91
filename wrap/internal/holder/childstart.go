package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

// starter starts workers.
type starter struct {
	holder  uintptr       // its pid
	mask    uint64        // the signals that workers block
	files   limit         // the open-file limit of workers; zero leaves it as it is
	null    uintptr       // /dev/null
	errno   syscall.Errno // why a child has not become a worker; the child sets it
	buffer  *buffer
	streams []uintptr // descriptors, which only the start of workers needs
	text    span      // as these addresses
	left    int       // workers that were neither started nor refused

	released bool
}

type limit struct{ soft, hard uint64 }

// start starts a worker. It returns when that has executed its program or has ended.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (s *starter) start(p *program) (pid uintptr, errno syscall.Errno) {
	s.errno = 0
	pid, errno = s.fork(p)
	if errno == 0 {
		errno = s.errno
	}
	if s.left--; s.left == 0 {
		s.release()
	}
	return pid, errno
}

// vfork is vfork(2). It is in assembly because its return address may not be on the stack.
func vfork() (pid, errno uintptr)

// fork makes the child, which has the memory and the stack of the holder until exec: to copy the
// memory takes five times as long. Therefore neither of them may go on in this function when it is
// both the child and the holder: the child stays, and the holder returns.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func (s *starter) fork(p *program) (pid uintptr, errno syscall.Errno) {
	child, failed := vfork()
	if child != 0 || failed != 0 {
		return child, syscall.Errno(failed)
	}
	s.errno = s.become(p)
	sys(syscall.SYS_EXIT_GROUP, 127, 0, 0, 0)
	return 0, 0
}

// become makes this process, a child of the holder, a worker. It returns only if that fails.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (s *starter) become(p *program) syscall.Errno {
	// The worker dies with the holder, also if the agent is killed at the same time.
	sys(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0)
	if parent, _ := sys(syscall.SYS_GETPPID, 0, 0, 0, 0); parent != s.holder {
		return syscall.ESRCH
	}
	p.place(s.buffer)
	if errno := p.enter(); errno != 0 {
		return errno
	}
	for i := range p.files {
		if errno := s.open(p.files[i], uintptr(i)); errno != 0 {
			return errno
		}
	}
	s.restoreLimit()
	if !Forked {
		resetHandlers()
	}
	forget(syscall.SIGTTOU)
	forget(syscall.SIGTTIN)
	forget(syscall.SIGTSTP) // last, because of all three terminals send this one most
	sys(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&s.mask)), 0, sigsetSize)
	return p.exec()
}

// open makes a descriptor, which is at least 3, a stream of this process.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (s *starter) open(fd, stream uintptr) syscall.Errno {
	if fd == none {
		fd = s.null
	}
	_, errno := sys(syscall.SYS_DUP3, fd, stream, 0, 0)
	return errno
}

//go:nosplit
//go:norace
//go:nocheckptr
func (s *starter) restoreLimit() {
	const nofile = 7
	if s.files.hard != 0 {
		sys(syscall.SYS_PRLIMIT64, 0, nofile, uintptr(unsafe.Pointer(&s.files)), 0)
	}
}

// release gives up what is not needed when no worker will be started any more, so that pipes end
// when the workers do.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (s *starter) release() {
	if s.released {
		return
	}
	s.released = true
	for _, fd := range s.streams {
		sys(syscall.SYS_CLOSE, fd, 0, 0, 0)
	}
	sys(syscall.SYS_MADVISE, s.text.at, s.text.size, syscall.MADV_DONTNEED, 0)
}
