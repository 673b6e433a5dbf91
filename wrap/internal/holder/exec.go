//go:build execholder

package holder

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/shared"
)

// Forked is false: the holder is the program, executed again. It maps what the agent has prepared
// at the same addresses. That takes more CPU time, but needs nothing that Go does not promise: it
// is for a release of Go in which fork.go fails.
const Forked = false

// fork executes the program again, and returns the pid of the holder.
func (h *holder) fork() (pid int, err error) {
	const attempts = 5 // the holder may have memory of its own at one of the addresses
	shared.Use(func(all []shared.Kept) {
		for range attempts {
			if pid, err = h.execute(all); !errors.Is(err, errNotMapped) {
				return
			}
		}
	})
	return pid, err
}

var errNotMapped = errors.New("the holder cannot map the memory of the agent")

func (h *holder) execute(memory []shared.Kept) (pid int, err error) {
	var ready [2]int // the holder writes a byte when it has mapped all memory
	if err := syscall.Pipe2(ready[:], syscall.O_CLOEXEC); err != nil {
		return 0, err
	}
	defer syscall.Close(ready[0])
	args := []string{Name, strconv.Itoa(ready[1]), fmt.Sprint(uintptr(unsafe.Pointer(h)))}
	keep := []int{ready[1]}
	for _, m := range memory {
		args, keep = append(args, fmt.Sprint(m.FD, " ", m.Address, " ", m.Size)), append(keep, m.FD)
	}
	pid, err = h.executeBlocked(args, h.files(keep))
	syscall.Close(ready[1])
	if err != nil {
		return 0, err
	}
	var b [1]byte
	if n, _ := syscall.Read(ready[0], b[:]); n != len(b) {
		_, _ = syscall.Wait4(pid, nil, 0, nil)
		return 0, errNotMapped
	}
	return pid, nil
}

// files are the descriptors of the holder: those that it keeps, and those that every child gets.
func (h *holder) files(keep []int) (files []uintptr) {
	for _, fd := range h.inherited.kept {
		keep = append(keep, int(fd))
	}
	files = []uintptr{h.inherited.null, h.inherited.null, h.inherited.null}
	for fd := len(files); fd <= slices.Max(keep); fd++ {
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		if !slices.Contains(keep, fd) && (errno != 0 || flags&syscall.FD_CLOEXEC != 0) {
			files = append(files, none)
			continue
		}
		files = append(files, uintptr(fd))
	}
	return files
}

// executeBlocked executes the program with all signals blocked.
func (h *holder) executeBlocked(args []string, files []uintptr) (pid int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all := ^uint64(0)
	setSignalMask(&all, &h.starter.mask)
	mask := h.starter.mask
	pid, err = syscall.ForkExec("/proc/self/exe", args, &syscall.ProcAttr{Files: files})
	setSignalMask(&mask, nil)
	return pid, err
}

// The holder runs on the main thread, which blocks all signals, before package main is initialised.
func init() {
	if len(os.Args) > 2 && os.Args[0] == Name {
		runtime.LockOSThread()
		runExecuted(os.Args[1:])
	}
}

func runExecuted(args []string) {
	var ready, at uintptr
	_, errReady := fmt.Sscan(args[0], &ready)
	_, errAt := fmt.Sscan(args[1], &at)
	if errReady != nil || errAt != nil {
		os.Exit(2)
	}
	for _, arg := range args[2:] {
		if !mapAgain(arg) {
			os.Exit(1)
		}
	}
	h := (*holder)(pointer(at))
	sys(syscall.SYS_WRITE, ready, at, 1, 0)
	sys(syscall.SYS_CLOSE, ready, 0, 0, 0)
	h.begin()
	h.run()
}

// mapAgain maps memory at the address that it has in the agent.
func mapAgain(arg string) bool {
	var fd, address, size uintptr
	if _, err := fmt.Sscan(arg, &fd, &address, &size); err != nil {
		return false
	}
	const access = syscall.PROT_READ | syscall.PROT_WRITE
	const noReplace = 0x100000 // MAP_FIXED_NOREPLACE, Linux 4.17; ignored before
	got, _, errno := syscall.RawSyscall6(syscall.SYS_MMAP, address, size, access,
		syscall.MAP_SHARED|noReplace, fd, 0)
	sys(syscall.SYS_CLOSE, fd, 0, 0, 0)
	return errno == 0 && got == address
}

// open opens signalfd(2). Go's runtime has unblocked some signals in all threads: the main thread
// blocks them again, and gets them from the others.
func (s *signals) open() {
	s.file = signalFile()
	all, blocked := ^uint64(0), uint64(0)
	setSignalMask(&all, &blocked)
	received := make(chan os.Signal, 64)
	var now sigaction
	for number := syscall.Signal(1); number <= 64; number++ {
		now.get(number)
		isOpen := blocked&(1<<(number-1)) == 0
		// The workers are to ignore what this process ignores. Go's scheduler sends SIGURG.
		if isOpen && number != syscall.SIGURG && now.handler != ignoreHandler {
			signal.Notify(received, number)
		}
	}
	go func() {
		for got := range received {
			_ = unix.Tgkill(os.Getpid(), os.Getpid(), got.(syscall.Signal))
		}
	}()
}

// block makes a system call that waits, and tells the scheduler of it.
func block(number, a, b, c uintptr) { syscall.Syscall6(number, a, b, c, 0, 0, 0) }

func mapShared(size int) ([]byte, error) {
	file, err := shared.New("holder", size)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return shared.Map(file, size, syscall.PROT_READ|syscall.PROT_WRITE)
}

// mapPrivate returns memory that the agent unmaps when it has started the holder.
func mapPrivate(size int) ([]byte, error) { return mapShared(size) }

func unmap(memory []byte) { shared.Unmap(memory) }
