package holder

import (
	"os"
	"syscall"
	"unsafe"
)

// memory is all that a holder knows. It is outside of Go's heap, and followed by what its addresses
// refer to. The agent makes it; the holder alone has it afterwards.
//
// It has no Go pointers: to write one may call the garbage collector.
type memory struct {
	base, size uintptr // of this memory
	page       uintptr // the size of a page: madvise(2) rounds up to whole ones
	shared     uintptr // address of Shared
	until      uintptr // address of when the workers' time is over, by boottime, in ns; 0 is never
	socket     uintptr // to the agent
	owner      uintptr // socket to the owner of the tree; none is none
	ownerPID   uintptr // 0 is unknown
	ownerStat  uintptr // "/proc/OWNER/stat"
	null       uintptr // /dev/null
	agent      uintptr // pid
	self       uintptr // pid of the holder
	move       uintptr // 1: the holder makes itself a process group
	mask       uint64  // the signals that workers block
	files      limit   // the open-file limit of workers; zero leaves it as it is
	arguments  span    // the command line of the agent
	stat       uintptr // "/proc/AGENT/stat"
	children   uintptr // "/proc/thread-self/children"
	name       uintptr // Name
	text       span    // what only the start of workers needs
	kept       span    // descriptors: of 8 bytes each
	streams    uintptr // how many of them only the start of workers needs; they come first
	highest    uintptr // the highest descriptor
	writable   span    // spans of the agent's own memory
	workers    uintptr // slots
	count      uintptr

	// What follows changes.
	signals  uintptr // descriptor of signalfd(2)
	begun    uintptr // workers that were started or refused
	live     uintptr // workers that run
	asleep   uintptr // of these, how many are suspended
	full     bool    // out could not be sent
	orphan   bool    // the agent has ended
	disowned bool    // the owner has ended
	finish   bool    // no worker will be started
	killing  bool
	finished bool     // Finished has been sent
	told     bool     // LeaseOver has been sent
	killBy   int64    // what has not died by then is a Survivor
	wakeBy   int64    // when the holder wakes at the latest
	resumed  int64    // when the holder or a worker was continued
	stop     uintptr  // the last signal of job control that stopped a worker; 0 if one was continued
	stopAt   int64    // when
	looked   int64    // last look at the agent
	frozen   [2]int64 // how many looks in succession have found that agent and owner are stopped
	in, out  Record
	poll     [3]pollFD
	time     syscall.Timespec
	info     [128]byte // struct siginfo, signalfd_siginfo, or sigaction
	buffer   [bufferSize]byte
	position uintptr
}

// slot is what the holder knows of a worker. path, dir, argv and env are addresses of text that
// ends with 0, or of lists of such addresses that end with 0.
type slot struct {
	path, dir, argv, env uintptr
	files                [3]uintptr
	group                uintptr // its process group; 0 is one of its own, none is that of the holder
	cpus                 span    // its affinity; empty leaves it as it is
	node                 uintptr // preferred memory node; none leaves the policy as it is
	pipe, log            uintptr // of its output; none is none
	chunk                uintptr // address of a Chunk; 0 is none

	pid       uintptr // 0 if it does not run
	began     int64   // shortly before its start
	suspended bool
	signalled bool
}

type (
	span   struct{ at, size uintptr }
	limit  struct{ soft, hard uint64 }
	pollFD struct {
		fd              int32
		events, revents int16
	}
)

// none is no descriptor, or nothing else.
const none = ^uintptr(0)

//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) slot(i uintptr) *slot {
	return (*slot)(at(m, m.workers-m.base+i*unsafe.Sizeof(slot{})))
}

// word is the n-th word of a span in m.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) word(s span, n uintptr) uintptr {
	return *(*uintptr)(at(m, s.at-m.base+n*unsafe.Sizeof(n)))
}

//go:nosplit
//go:norace
//go:nocheckptr
func at(m *memory, offset uintptr) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(m), offset) }

// Shared is memory that agent and holder share. The agent writes it.
type Shared struct {
	LeaseUntil int64 // when the workers' time is over, by boottime, in ns, without Config.Until
	LeaseGrace int64 // how long after SIGTERM they may run then, in ns
	Held       int64 // 1: it is over, and the agent has stopped the tree
	FrozenFor  int64 // how long the agent may be stopped while workers run, in ns; 0 is for ever
	errno      uintptr
}

// mapShared returns memory that a fork shares.
func mapShared(size int) ([]byte, error) {
	const access = syscall.PROT_READ | syscall.PROT_WRITE
	return syscall.Mmap(-1, 0, size, access, syscall.MAP_SHARED|syscall.MAP_ANONYMOUS)
}

// arena builds a memory.
type arena struct {
	memory []byte
	next   uintptr
}

func newArena(size uintptr) (a arena, err error) {
	const access = syscall.PROT_READ | syscall.PROT_WRITE
	const private = syscall.MAP_PRIVATE | syscall.MAP_ANONYMOUS
	page := uintptr(os.Getpagesize())
	a.memory, err = syscall.Mmap(-1, 0, int((size+page)&^(page-1)), access, private)
	return a, err
}

// bufferSize is the size of memory.buffer.
const bufferSize = 4096

// take takes size bytes and returns their address.
func (a *arena) take(size uintptr) uintptr {
	at := a.next
	if a.next += (size + 7) &^ 7; a.next > uintptr(len(a.memory)) {
		panic("holder: the memory is too small")
	}
	return uintptr(unsafe.Pointer(&a.memory[0])) + at
}

// text returns the address of a copy of s that ends with 0.
func (a *arena) text(s string) uintptr {
	to := a.take(uintptr(len(s)) + 1)
	copy(a.memory[to-uintptr(unsafe.Pointer(&a.memory[0])):], s)
	return to
}

// words returns a span with these words.
func (a *arena) words(list []uintptr) span {
	s := span{a.take(uintptr(len(list))*8 + 8), uintptr(len(list))}
	from := s.at - uintptr(unsafe.Pointer(&a.memory[0]))
	for i, w := range list {
		*(*uintptr)(unsafe.Pointer(&a.memory[from+uintptr(i)*8])) = w
	}
	return s
}

// texts returns the address of a list of the addresses of copies, which ends with 0.
func (a *arena) texts(list []string) uintptr {
	var addresses []uintptr
	for _, s := range list {
		addresses = append(addresses, a.text(s))
	}
	return a.words(addresses).at // 0 follows
}
