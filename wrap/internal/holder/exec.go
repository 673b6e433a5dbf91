//go:build holderexec

package holder

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// With this build tag the fork executes the program again. Go initialises packages in the order of
// their import paths as soon as all their imports are initialised: "rdzv/..." is before "reflect",
// which most packages need, so that the holder begins after about 25 small packages. Therefore this
// package and its imports may import only os, syscall, sync, time, errors, strconv and the like.
//
// What the agent has prepared is in files in memory, which the holder maps at the same addresses.

// executed are the files of shared memory.
var executed struct {
	sync.Mutex
	shared map[uintptr]int // descriptors of shared memory by address
}

const prefix = "--wrap-holder="

func mapShared(size int) ([]byte, error) {
	fd, err := memoryFile(size)
	if err != nil {
		return nil, err
	}
	const access = syscall.PROT_READ | syscall.PROT_WRITE
	b, err := syscall.Mmap(fd, 0, size, access, syscall.MAP_SHARED)
	if err != nil {
		syscall.Close(fd)
		return nil, err
	}
	executed.Lock()
	defer executed.Unlock()
	if executed.shared == nil {
		executed.shared = map[uintptr]int{}
	}
	executed.shared[uintptr(unsafe.Pointer(&b[0]))] = fd
	return b, nil
}

func unmapShared(b []byte) {
	executed.Lock()
	defer executed.Unlock()
	at := uintptr(unsafe.Pointer(&b[0]))
	syscall.Close(executed.shared[at])
	delete(executed.shared, at)
	_ = syscall.Munmap(b)
}

func memoryFile(size int) (fd int, err error) {
	name := [...]byte{'h', 0}
	const closeOnExec = 1
	n, _, errno := syscall.Syscall(memfdCreate, uintptr(unsafe.Pointer(&name)), closeOnExec, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), syscall.Ftruncate(int(n), int64(size))
}

// files are those of a holder, as text for its arguments: for each file its descriptor, address and
// size.
var files = map[*memory]string{}

// addExecuted adds the files of the memory and of what is shared. They are closed when the holder
// has been started.
func (d *descriptors) addExecuted(m *memory, c Config) error {
	text := ""
	add := func(fd int, at, size uintptr) {
		copied := (&descriptors{of: map[int]uintptr{}}).add(fd)
		d.list = append(d.list, copied)
		for _, n := range []uintptr{copied, at, size} {
			text += strconv.FormatUint(uint64(n), 10) + ","
		}
	}
	own, err := memoryFile(int(m.size))
	if err != nil {
		return err
	}
	add(own, m.base, m.size)
	syscall.Close(own)
	executed.Lock()
	defer executed.Unlock()
	add(executed.shared[m.shared], m.shared, unsafe.Sizeof(Shared{}))
	for i := range c.Workers {
		if chunk := m.slot(uintptr(i)).chunk; chunk != 0 {
			add(executed.shared[chunk], chunk, unsafe.Sizeof(Chunk{}))
		}
	}
	files[m] = text
	return nil
}

// fork forks this process, and the fork executes the program.
func (m *memory) fork() (pid int, err error) {
	executed.Lock()
	defer executed.Unlock()
	text := files[m]
	delete(files, m)
	own, _ := strconv.Atoi(text[:strings.IndexByte(text, ',')])
	if _, err := syscall.Pwrite(own, unsafe.Slice((*byte)(unsafe.Pointer(m)), m.size), 0); err != nil {
		return 0, err
	}
	path, err1 := syscall.BytePtrFromString("/proc/self/exe")
	argv, err2 := syscall.SlicePtrFromStrings([]string{Name, prefix + text})
	env, err3 := syscall.SlicePtrFromStrings([]string{"GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0"})
	if err := errors.Join(err1, err2, err3); err != nil {
		return 0, err
	}
	n, errno := m.cloneAndExec(uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])),
		uintptr(unsafe.Pointer(&env[0])))
	runtime.KeepAlive([]any{path, argv, env})
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

//go:nosplit
//go:noinline
//go:norace
//go:nocheckptr
func (m *memory) cloneAndExec(path, argv, env uintptr) (pid uintptr, errno syscall.Errno) {
	pid, errno = sys(syscall.SYS_CLONE, syscall.CLONE_VFORK|uintptr(syscall.SIGCHLD), 0, 0, 0)
	if errno == 0 && pid == 0 {
		m.begin()
		m.keepOpen(0)
		sys(syscall.SYS_EXECVE, path, argv, env, 0)
		sys(syscall.SYS_EXIT_GROUP, 1, 0, 0, 0)
	}
	return pid, errno
}

// keepOpen sets the flags of the kept descriptors.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) keepOpen(flags uintptr) {
	for i := uintptr(0); i < m.kept.size; i++ {
		sys(syscall.SYS_FCNTL, m.word(m.kept, i), syscall.F_SETFD, flags, 0)
	}
}

func init() {
	if len(os.Args) != 2 || !strings.HasPrefix(os.Args[1], prefix) {
		return
	}
	runtime.LockOSThread() // the parent-death signal of a worker is tied to the thread that forks it
	m := mapFiles(strings.Split(strings.TrimPrefix(os.Args[1], prefix), ","))
	self, _ := sys(syscall.SYS_GETPID, 0, 0, 0, 0)
	m.self = self
	if l := workerFiles(); m.files.hard == 0 {
		m.files = l // Go has raised the limit of this process too
	}
	const setName, eventFD = 15, 1<<11 | 0x80000
	sys(syscall.SYS_PRCTL, setName, m.name, 0, 0)
	m.keepOpen(syscall.FD_CLOEXEC)
	m.relaySignals()
	var errno syscall.Errno
	if m.changes, errno = sys(syscall.SYS_EVENTFD2, 0, eventFD, 0, 0); errno != 0 {
		os.Exit(1)
	}
	go m.notice()
	m.run()
}

// relaySignals makes the descriptor for signals to this process. Go unblocks the most important
// ones, so that they are caught and written there in the form of signalfd(2).
func (m *memory) relaySignals() {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		os.Exit(1)
	}
	m.signals = uintptr(ends[0])
	caught := make(chan os.Signal, 64)
	signal.Notify(caught)
	go func() {
		for s := range caught {
			var info [128]byte
			if info[0] = byte(s.(syscall.Signal)); s != syscall.SIGCHLD && s != syscall.SIGURG {
				_, _ = syscall.Write(ends[1], info[:])
			}
		}
	}()
}

// mapFiles maps the files at the addresses that they have in the agent.
func mapFiles(numbers []string) *memory {
	var list [3]uintptr
	var m *memory
	for i, text := range numbers[:len(numbers)-1] {
		n, err := strconv.ParseUint(text, 10, 64)
		if list[i%3] = uintptr(n); err != nil {
			os.Exit(1)
		}
		if i%3 < 2 {
			continue
		}
		const access, fixed = syscall.PROT_READ | syscall.PROT_WRITE, 0x100000 // MAP_FIXED_NOREPLACE
		at, _, errno := syscall.Syscall6(syscall.SYS_MMAP, list[1], list[2], access,
			syscall.MAP_SHARED|fixed, list[0], 0)
		if errno != 0 || at != list[1] {
			os.Exit(1)
		}
		if m == nil {
			m = (*memory)(*(*unsafe.Pointer)(unsafe.Pointer(&at)))
		}
	}
	return m
}

// notice wakes the holder when a child may have changed. Go unblocks SIGCHLD, so that no signalfd
// has it.
func (m *memory) notice() {
	const changed = syscall.WEXITED | syscall.WSTOPPED | syscall.WCONTINUED | syscall.WNOWAIT
	one := uint64(1)
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, 0, 0, 0, changed, 0, 0)
		syscall.Syscall(syscall.SYS_WRITE, m.changes, uintptr(unsafe.Pointer(&one)), 8)
		time.Sleep(time.Millisecond) // until it has reaped that
		if errno == syscall.ECHILD {
			time.Sleep(4 * time.Millisecond) // it has none yet
		}
	}
}
