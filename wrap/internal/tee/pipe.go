package tee

import (
	"syscall"
	"time"
	"unsafe"
)

// pipeSize is the size of the pipe of a worker. A user's processes may have 64 MB in all
// (pipe-user-pages-soft, pipe(7)).
const pipeSize = 256 << 10

// Commands of fcntl(2), and events of poll(2).
const (
	setPipeSize = 1031
	getPipeSize = 1032
	pollIn      = 1
	pollOut     = 4
)

// NewPipe returns the ends of a pipe for a worker. Reading does not block.
func NewPipe() (read, write int, err error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return 0, 0, err
	}
	_ = syscall.SetNonblock(ends[0], true) // cannot fail
	fcntl(ends[0], setPipeSize, pipeSize)  // if that fails the pipe is smaller
	return ends[0], ends[1], nil
}

func fcntl(fd, command, arg int) int {
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), uintptr(command), uintptr(arg))
	if errno != 0 {
		return -1
	}
	return int(n)
}

// inPipe is the number of bytes in a pipe.
func inPipe(fd int) int {
	var n int32
	syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TIOCINQ, uintptr(unsafe.Pointer(&n)))
	return int(n)
}

// poll waits until fd is ready for events.
func poll(fd int, events int16) {
	set := struct {
		fd              int32
		events, revents int16
	}{int32(fd), events, 0}
	syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&set)), 1, 0, 0, 0, 0)
}

// pace lets a Tee rest between reads, so that a worker that writes line by line does not wake it
// for every line. A line after a pause is copied at once. The rest becomes shorter when the pipe
// fills, so that the worker does not have to wait.
type pace struct {
	size int // of the pipe
	most time.Duration
	next time.Duration
}

const (
	minRest = 50 * time.Microsecond
	maxRest = 2 * time.Millisecond
)

func newPace(fd int, pty bool) *pace {
	if pty {
		return &pace{size: ptySize, most: ptyRest, next: ptyRest}
	}
	return &pace{size: max(fcntl(fd, getPipeSize, 0), pipeBuf), most: maxRest}
}

// after is called when n bytes have been read.
func (p *pace) after(n int) {
	switch { // writes of little more than half a page fill half of a pipe
	case n > p.size/4:
		p.next /= 2
	case n < p.size/8:
		p.next = min(2*max(p.next, minRest/2), p.most)
	}
	if p.next < minRest {
		p.next = 0
	}
}

func (p *pace) rest() {
	if p.next > 0 {
		time.Sleep(p.next)
	}
}
