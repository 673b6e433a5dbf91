// Package holder is the process between an agent and its workers. It starts them, waits for them,
// and adopts and waits for the descendants that they orphan. When the agent has ended, or is
// stopped for too long while workers run, the holder kills all of that. It decides nothing else:
// the agent orders what is to be started and signalled.
//
// The holder is a fork of the agent without exec, so that it costs a fraction of a millisecond and
// a few pages of memory. A fork of a Go program has one thread, no scheduler; the files child*.go
// say what may run there.
//
// It is in a process group of its own, which no launcher signals, blocks all signals, and its name
// and arguments do not contain that of the agent: "pkill -9 rdzv" kills the agents alone.
package holder

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"rdzv/internal/openlimit"
	"rdzv/internal/procfs"
)

// Name is the name of the holder as ps shows it.
const Name = "tree-holder"

// KillWait is how long processes may take to die of SIGKILL before they are reported as Survivors:
// they may belong to another user or hang in the kernel.
const KillWait = time.Duration(killWait)

// Worker is one program to start.
type Worker struct {
	Path  string   // executable; a relative path is resolved in Dir
	Dir   string   // working directory; "" is the agent's
	Args  []string // argv, including argv[0]
	Env   []string // "NAME=value"
	Files [3]int   // stdin, stdout, stderr: descriptors of the agent, or Null
	CPUs  []int    // its affinity; the agent's if empty
	Node  int      // NUMA node from which it prefers memory, or AnyNode

	// Pipe and Log are the read end of a pipe of its output, and where that is copied; Null if there
	// is no log. What the agent has read is in Chunk meanwhile.
	Pipe, Log int
	Chunk     *Chunk
}

const (
	// Null in Worker.Files is /dev/null.
	Null = -1
	// AnyNode in Worker.Node leaves the memory policy as it is.
	AnyNode = -1
)

// Process is a holder.
type Process struct {
	PID    int
	Socket int // a SOCK_SEQPACKET to it, with a Record in each packet
	Shared *Shared
	shared []byte
}

// Config is what a holder can start, and for how long.
type Config struct {
	Workers []Worker
	// SameGroup makes the workers members of the process group of the agent; otherwise each is in one
	// of its own.
	SameGroup bool
	// Owner is a stream socket to the process that owns the tree: when that has closed its end the
	// holder kills everything. If it is stopped for Shared.FrozenFor it is killed. 0 is none.
	Owner int
	// Until is used instead of Shared.LeaseUntil if it is set: it is in other memory that processes
	// share.
	Until *int64
}

// New starts a holder, which has no workers yet.
func New(c Config) (p *Process, err error) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX,
		syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errors.New("cannot create a socket pair: " + err.Error())
	}
	d := &descriptors{of: map[int]uintptr{}}
	defer d.close()
	defer syscall.Close(ends[1])
	p = &Process{Socket: ends[0]}
	if err = p.share(); err == nil {
		var m *memory
		if m, err = d.memory(c, p, ends[1]); err == nil {
			defer m.unmap()
			p.PID, err = m.launch()
		}
	}
	if err != nil {
		syscall.Close(ends[0])
		p.Close()
		return nil, err
	}
	return p, nil
}

// share makes the memory that agent and holder share.
func (p *Process) share() (err error) {
	p.shared, err = mapShared(int(unsafe.Sizeof(Shared{})))
	if err == nil {
		p.Shared = (*Shared)(unsafe.Pointer(&p.shared[0]))
	}
	return err
}

// NewChunk returns a Chunk without bytes.
func NewChunk() (*Chunk, error) {
	memory, err := mapShared(int(unsafe.Sizeof(Chunk{})))
	if err != nil {
		return nil, err
	}
	c := (*Chunk)(unsafe.Pointer(&memory[0]))
	for i := range c.Bytes {
		c.Bytes[i] = Fill
	}
	return c, nil
}

// Close releases the memory of c.
func (c *Chunk) Close() {
	_ = syscall.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(c)), unsafe.Sizeof(*c)))
}

// Close releases the shared memory. The socket remains.
func (p *Process) Close() {
	if p.shared != nil {
		_ = syscall.Munmap(p.shared)
		p.shared, p.Shared = nil, nil
	}
}

// Monotonic is the time of CLOCK_MONOTONIC, which all processes of a machine share.
func Monotonic() time.Duration {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}

// descriptors are those that the holder keeps: copies above 2, so that they can replace the streams
// of a worker in any order.
type descriptors struct {
	of   map[int]uintptr // copies by original
	list []uintptr
	err  error
}

// add returns a copy of a descriptor, which all users share.
func (d *descriptors) add(fd int) uintptr {
	if fd == Null {
		return none
	}
	if copied, ok := d.of[fd]; ok {
		return copied
	}
	copied, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 3)
	if errno != 0 {
		d.err = errno
		return none
	}
	d.of[fd], d.list = copied, append(d.list, copied)
	return copied
}

func (d *descriptors) close() {
	for _, fd := range d.list {
		syscall.Close(int(fd))
	}
}

// memory makes the memory of the holder.
func (d *descriptors) memory(c Config, p *Process, socket int) (*memory, error) {
	page := uintptr(os.Getpagesize())
	size := unsafe.Sizeof(memory{}) + 3*page
	for _, w := range c.Workers {
		size += w.size() + 128
	}
	a, err := newArena(size + 64<<10) // and room for what is read from /proc
	if err != nil {
		return nil, err
	}
	base := a.take(unsafe.Sizeof(memory{}))
	m := (*memory)(unsafe.Pointer(&a.memory[0]))
	m.base, m.size, m.page = base, uintptr(len(a.memory)), page
	m.shared, m.agent = uintptr(unsafe.Pointer(p.Shared)), uintptr(os.Getpid())
	m.until = uintptr(unsafe.Pointer(&p.Shared.LeaseUntil))
	if c.Until != nil {
		m.until = uintptr(unsafe.Pointer(c.Until))
	}
	m.stat = a.text(statFile(os.Getpid()))
	m.children, m.name = a.text("/proc/thread-self/children"), a.text(Name+"\x00\x00\x00\x00")
	m.workers, m.count = a.take(unsafe.Sizeof(slot{})*uintptr(len(c.Workers))), uintptr(len(c.Workers))
	m.files = workerFiles()
	group := syscall.Getpgrp()
	if group != 0 { // otherwise this pid namespace has no number for it, and nothing can be put back
		m.move = 1
	}
	for i := range c.Workers {
		w := &c.Workers[i]
		s := m.slot(uintptr(i))
		*s = slot{pipe: none, log: none, node: uintptr(w.Node)} // AnyNode is none
		for stream, fd := range w.Files {
			s.files[stream] = d.add(fd)
		}
		switch {
		case c.SameGroup && group == 0:
			s.group = none
		case c.SameGroup:
			s.group = uintptr(group)
		}
	}
	m.streams = uintptr(len(d.list))
	for i := range c.Workers {
		if w := &c.Workers[i]; w.Log != Null {
			s := m.slot(uintptr(i))
			// Not shared with the streams, which are closed before.
			own := &descriptors{of: map[int]uintptr{}}
			s.pipe, s.log, s.chunk = own.add(w.Pipe), own.add(w.Log), uintptr(unsafe.Pointer(w.Chunk))
			d.list, d.err = append(d.list, own.list...), errors.Join(d.err, own.err)
		}
	}
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err = errors.Join(err, d.err); err != nil {
		m.unmap()
		return nil, err
	}
	own := &descriptors{of: map[int]uintptr{}}
	m.null, m.socket, m.owner = own.add(null), own.add(socket), none
	if c.Owner != 0 {
		m.owner, m.ownerPID = own.add(c.Owner), peer(c.Owner)
		m.ownerStat = a.text(statFile(int(m.ownerPID)))
	}
	syscall.Close(null)
	d.list = append(d.list, own.list...)
	if own.err != nil {
		m.unmap()
		return nil, own.err
	}
	m.kept, m.highest = a.words(d.list), highestDescriptor()
	m.readOwn(&a)
	// Each worker's own text begins at a page, so that it can be given up.
	a.next = (a.next + page - 1) &^ (page - 1)
	m.text.at = base + a.next
	for i := range c.Workers {
		m.slot(uintptr(i)).describe(&a, &c.Workers[i])
	}
	m.text.size = m.size - (m.text.at - base)
	return m, nil
}

func statFile(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/stat" }

// peer is the process at the other end of a socket; 0 if it is in another pid namespace.
func peer(socket int) uintptr {
	who, err := syscall.GetsockoptUcred(socket, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil || who.Pid < 0 {
		return 0
	}
	return uintptr(who.Pid)
}

// size is how many bytes the text of a worker takes at most.
func (w *Worker) size() uintptr {
	size := unsafe.Sizeof(slot{}) + uintptr(len(w.Path)+len(w.Dir)+64)
	for _, list := range [][]string{w.Args, w.Env} {
		for _, s := range list {
			size += uintptr(len(s)) + 32
		}
	}
	for _, cpu := range w.CPUs {
		size = max(size, size+uintptr(cpu)/8)
	}
	return size + 8*8 + 8192/8 + 6*8
}

// describe writes the text of a worker.
func (s *slot) describe(a *arena, w *Worker) {
	s.path, s.argv, s.env = a.text(w.Path), a.texts(w.Args), a.texts(w.Env)
	if w.Dir != "" {
		s.dir = a.text(w.Dir)
	}
	if len(w.CPUs) > 0 {
		const maxCPUs = 8192 // NR_CPUS on x86 and arm
		var mask [maxCPUs / 64]uintptr
		for _, cpu := range w.CPUs {
			if cpu >= 0 && cpu < maxCPUs {
				mask[cpu/64] |= 1 << (cpu % 64)
			}
		}
		s.cpus = a.words(mask[:])
	}
}

// workerFiles is the open-file limit with which this process was started, if the Go runtime has
// raised it: zero otherwise.
func workerFiles() limit {
	var now syscall.Rlimit
	soft := openlimit.Soft()
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now)
	if err != nil || soft == 0 || now.Cur != now.Max-1 || soft >= now.Cur {
		return limit{}
	}
	return limit{soft, now.Max}
}

// highestDescriptor is the highest descriptor of this process.
func highestDescriptor() uintptr {
	highest := 1023
	list, _ := os.ReadDir("/proc/self/fd")
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			highest = max(highest, fd)
		}
	}
	return uintptr(highest)
}

// readOwn notes where the arguments and the writable memory of this process are. Without /proc the
// holder keeps both.
func (m *memory) readOwn(a *arena) {
	m.arguments.at, m.arguments.size = procfs.ArgumentMemory(procfs.System, os.Getpid())
	var list []uintptr
	all, _ := procfs.Mappings(procfs.System, os.Getpid())
	add := func(from, to uintptr) {
		const most = 4096 // there is room for more
		if from < to && len(list) < most {
			list = append(list, from, to)
		}
	}
	for _, s := range all {
		if s.Perms != "rw-p" {
			continue
		}
		// The kernel may have joined this memory with others.
		from, to := uintptr(s.Start), uintptr(s.End)
		add(from, min(to, m.base))
		add(max(from, m.base+m.size), to)
	}
	m.writable = a.words(list)
}

func (m *memory) unmap() {
	_ = syscall.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(m)), m.size))
}

// launch starts the holder and returns its pid.
func (m *memory) launch() (pid int, err error) {
	const setMask = 2
	all := ^uint64(0)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&all)),
		uintptr(unsafe.Pointer(&m.mask)), sigsetSize, 0, 0)
	mask := m.mask
	pid, err = m.fork()
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&mask)), 0,
		sigsetSize, 0, 0)
	return pid, err
}
