package keeper

import (
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// An owner is the process that the keeper lives as long as. Its stat stays one process's though its
// number may pass to another.
type owner struct {
	stat  *os.File
	pidfd int // -1 where the kernel or a sandbox allows none
}

// sysPidfdOpen is the number of pidfd_open(2) on every architecture; package syscall is older than
// it.
const sysPidfdOpen = 434

func hold(pid string) (*owner, error) {
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
	if o.ended() { // before the pidfd was there, which may then be another's
		return nil, os.ErrProcessDone
	}
	return o, nil
}

// ended looks whether the process is gone. /proc says so in words for one that it has shown before.
func (o *owner) ended() bool {
	_, err := o.stat.ReadAt(make([]byte, 1), 0)
	return err != nil
}

// lookEvery is how often a process is looked at that cannot be held by pidfd.
const lookEvery = 250 * time.Millisecond

type pollFD struct {
	fd              int32
	events, revents int16
}

const pollIn = 1

// wait returns when the owner is gone, or somebody connects to the listener.
func (o *owner) wait(listener int) (gone, asked bool) {
	fds := [...]pollFD{{fd: int32(o.pidfd), events: pollIn}, {fd: int32(listener), events: pollIn}}
	var limit *syscall.Timespec // none
	if o.pidfd < 0 {
		t := syscall.NsecToTimespec(lookEvery.Nanoseconds())
		limit = &t
	}
	syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(limit)), 0, 0, 0)
	return fds[0].revents != 0 || o.pidfd < 0 && o.ended(), fds[1].revents != 0
}
