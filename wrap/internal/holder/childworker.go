package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

// start starts worker i and reports that.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) start(i uintptr) {
	w := m.slot(i)
	shared := (*Shared)(at(m, m.shared-m.base))
	shared.errno = 0
	began := m.clock(clockMonotonic)
	// The holder goes on when the child has executed its program or has ended.
	pid, errno := sys(syscall.SYS_CLONE, syscall.CLONE_VFORK|uintptr(syscall.SIGCHLD), 0, 0, 0)
	if errno == 0 && pid == 0 {
		shared.errno = uintptr(m.become(w))
		sys(syscall.SYS_EXIT_GROUP, 127, 0, 0, 0)
	}
	if errno == 0 {
		errno = syscall.Errno(shared.errno)
	}
	if m.begun++; m.begun == m.count {
		m.closeStreams()
	}
	if errno != 0 { // reap reaps the child
		m.report(Refused, i, int64(errno), 0, 0)
		return
	}
	w.pid, w.began, w.suspended, w.signalled = pid, began, false, false
	m.live++
	if m.stop != 0 && began < m.stopAt+second {
		sys(syscall.SYS_KILL, pid, m.stop, 0, 0)
	}
	m.report(Started, i, int64(pid), began, 0)
}

// become makes this process, a child of the holder, a worker. It returns only if that fails.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) become(w *slot) syscall.Errno {
	const setMask, nofile, preferred, maxNodes = 2, 7, 1, 1024
	// The worker dies with the holder, also if the agent is killed at the same time.
	sys(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0)
	if parent, _ := sys(syscall.SYS_GETPPID, 0, 0, 0, 0); parent != m.self {
		return syscall.ESRCH
	}
	if w.group != none {
		sys(syscall.SYS_SETPGID, 0, w.group, 0, 0)
	}
	// What the kernel refuses of the next two stays as it is: such a worker is slower, but right.
	if w.cpus.size > 0 {
		sys(syscall.SYS_SCHED_SETAFFINITY, 0, w.cpus.size*8, w.cpus.at, 0)
	}
	if w.node < maxNodes {
		nodes := (*[maxNodes / 64]uint64)(unsafe.Pointer(&m.buffer))
		*nodes = [maxNodes / 64]uint64{}
		nodes[w.node/64%uintptr(len(nodes))] = 1 << (w.node % 64)
		sys(syscall.SYS_SET_MEMPOLICY, preferred, uintptr(unsafe.Pointer(nodes)), maxNodes+1, 0)
	}
	if w.dir != 0 {
		if _, errno := sys(syscall.SYS_CHDIR, w.dir, 0, 0, 0); errno != 0 {
			return errno
		}
	}
	for stream := uintptr(0); stream < 3; stream++ {
		if _, errno := sys(syscall.SYS_DUP3, m.file(w, stream), stream, 0, 0); errno != 0 {
			return errno
		}
	}
	if m.files.hard != 0 {
		sys(syscall.SYS_PRLIMIT64, 0, nofile, uintptr(unsafe.Pointer(&m.files)), 0)
	}
	forgetStop(m, syscall.SIGTTOU)
	forgetStop(m, syscall.SIGTTIN)
	forgetStop(m, syscall.SIGTSTP) // last, because of all three terminals send this one most
	sys(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&m.mask)), 0, sigsetSize)
	_, errno := sys(syscall.SYS_EXECVE, w.path, w.argv, w.env, 0)
	return errno
}

// forgetStop forgets a signal of job control that this process has received, and which would stop
// it before exec: the holder would wait for that. See stopStarted.
//
//go:nosplit
//go:norace
//go:nocheckptr
func forgetStop(m *memory, s syscall.Signal) {
	action := (*[8]uintptr)(unsafe.Pointer(&m.info)) // begins with the handler
	at := uintptr(unsafe.Pointer(action))
	sys(syscall.SYS_RT_SIGACTION, uintptr(s), 0, at, sigsetSize)
	if action[0] == ignoreHandler {
		return
	}
	action[0] = ignoreHandler
	sys(syscall.SYS_RT_SIGACTION, uintptr(s), at, 0, sigsetSize)
	action[0] = 0
	sys(syscall.SYS_RT_SIGACTION, uintptr(s), at, 0, sigsetSize)
}

// stopStarted is called when a signal has stopped a worker. If it is one of job control, which a
// terminal or a launcher sends to all workers, those started within a second may not have received
// it, and are stopped too; start stops those that start within a second from now. A worker that has
// received the signal twice stops once.
//
//go:nosplit
//go:norace
//go:nocheckptr
func stopStarted(m *memory, signal uintptr) {
	switch syscall.Signal(signal) {
	case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
	default:
		return
	}
	m.stop, m.stopAt = signal, m.clock(clockMonotonic)
	for i := uintptr(0); i < m.count; i++ {
		if w := m.slot(i); w.pid != 0 && !w.suspended && m.stopAt < w.began+second {
			sys(syscall.SYS_KILL, w.pid, signal, 0, 0)
		}
	}
}

// file is the descriptor, at least 3, for a stream of a worker.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) file(w *slot, stream uintptr) uintptr {
	// Not by index: a bounds check may panic.
	fd := *(*uintptr)(unsafe.Add(unsafe.Pointer(&w.files), stream*unsafe.Sizeof(stream)))
	if fd == none {
		return m.null
	}
	return fd
}

// closeStreams closes what is not needed when no worker will be started any more, so that pipes end
// when the workers do.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) closeStreams() {
	for ; m.streams > 0; m.streams-- {
		sys(syscall.SYS_CLOSE, m.word(m.kept, m.streams-1), 0, 0, 0)
	}
	if m.text.size > 0 {
		sys(syscall.SYS_MADVISE, m.text.at, m.text.size, syscall.MADV_DONTNEED, 0)
		m.text.size = 0
	}
}

// Chunk is what an agent has read of the output of a worker and may not have written to its log. A
// holder writes it there if the agent is killed.
type Chunk struct {
	// Size is the size that the log had before the chunk.
	Size int64
	// Bytes begin with the chunk, and Fill follows to the end. It is no byte of a text.
	Bytes [ChunkSize]byte
}

const (
	ChunkSize = 128 << 10
	Fill      = 0xff
)

// drain writes to the log of a worker what the agent, which has ended, has not.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) drain(w *slot) {
	if w.log == none {
		return
	}
	if w.chunk != 0 {
		m.writeChunk(w)
	}
	for {
		n, errno := sys(syscall.SYS_READ, w.pipe, uintptr(unsafe.Pointer(&m.buffer)), bufferSize, 0)
		if errno != 0 || n == 0 || !m.write(w.log, uintptr(unsafe.Pointer(&m.buffer)), n) {
			return // EAGAIN: another process has the pipe too
		}
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) writeChunk(w *slot) {
	chunk := (*Chunk)(at(m, w.chunk-m.base))
	n := uintptr(ChunkSize)
	for n > 0 && *(*byte)(unsafe.Add(unsafe.Pointer(&chunk.Bytes), n-1)) == Fill {
		n--
	}
	const end = 2 // SEEK_END
	size, errno := sys(syscall.SYS_LSEEK, w.log, 0, end, 0)
	if errno != 0 || int64(size) < chunk.Size {
		return // it is no file, or another process has changed it
	}
	if done := size - uintptr(chunk.Size); done < n {
		m.write(w.log, uintptr(unsafe.Pointer(&chunk.Bytes))+done, n-done)
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) write(fd, from, size uintptr) bool {
	for size > 0 {
		n, errno := sys(syscall.SYS_WRITE, fd, from, size, 0)
		if errno != 0 || n == 0 {
			return false
		}
		from, size = from+n, size-n
	}
	return true
}

// drop closes what drain would use.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) drop(i uintptr) {
	w := m.slot(i)
	if w.log != none {
		sys(syscall.SYS_CLOSE, w.log, 0, 0, 0)
		sys(syscall.SYS_CLOSE, w.pipe, 0, 0, 0)
	}
	w.log, w.pipe = none, none
}
