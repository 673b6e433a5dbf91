package keeper

import (
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// An owner is the process whose end ends the keeper. An open stat file always belongs to the same
// process, even if its pid is reused.
type owner struct {
	stat  *os.File
	pidfd int // -1 if the kernel or a sandbox does not allow pidfd_open
}

// sysPidfdOpen is the number of pidfd_open(2) on all architectures. Package syscall does not define
// it.
const sysPidfdOpen = 434

func openOwner(pid string) (*owner, error) {
	number, err := strconv.Atoi(pid)
	if err != nil {
		return nil, err
	}
	stat, err := os.Open("/proc/" + pid + "/stat")
	if err != nil {
		return nil, err
	}
	o := &owner{stat: stat, pidfd: -1}
	if fd, _, errno := syscall.RawSyscall(sysPidfdOpen, uintptr(number), 0, 0); errno == 0 {
		o.pidfd = int(fd)
	}
	if o.ended() { // it ended before the pidfd was opened, which may belong to another process
		return nil, os.ErrProcessDone
	}
	return o, nil
}

// ended reports whether the process has ended: reading its stat file then fails.
func (o *owner) ended() bool {
	_, err := o.stat.ReadAt(make([]byte, 1), 0)
	return err != nil
}

// pollInterval is how often an owner is checked that has no pidfd.
const pollInterval = 250 * time.Millisecond

type pollFD struct {
	fd              int32
	events, revents int16
}

const pollIn = 1

// wait returns when the owner has ended or a process connects to the listener.
func (o *owner) wait(listener int) (ended, connected bool) {
	fds := [...]pollFD{{fd: int32(o.pidfd), events: pollIn}, {fd: int32(listener), events: pollIn}}
	var limit *syscall.Timespec // nil: no time limit
	if o.pidfd < 0 {
		t := syscall.NsecToTimespec(pollInterval.Nanoseconds())
		limit = &t
	}
	syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)),
		uintptr(unsafe.Pointer(limit)), 0, 0, 0)
	return fds[0].revents != 0 || o.pidfd < 0 && o.ended(), fds[1].revents != 0
}
