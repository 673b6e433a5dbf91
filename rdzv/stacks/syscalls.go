package stacks

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// call is a system call in which threads wait.
type call struct {
	number      int
	name        string
	does        string // what the thread is doing
	preposition string // before the kind of what on refers to
	on          argument
}

// argument says which arguments of a system call lead to the file or connection that it is about.
type argument byte

const (
	nothing argument = iota
	descriptor
	pollList        // an array of struct pollfd, and its length
	epollDescriptor // which has a list of descriptors
)

// callOf is the system call with a number. Those that only some architectures have are in oldCalls.
func callOf(number int) call {
	for _, c := range [...]call{
		{unix.SYS_FUTEX, "futex", "waiting for another thread", "", nothing},
		{unix.SYS_NANOSLEEP, "nanosleep", "sleeping", "", nothing},
		{unix.SYS_CLOCK_NANOSLEEP, "clock_nanosleep", "sleeping", "", nothing},
		{unix.SYS_READ, "read", "reading", "from", descriptor},
		{unix.SYS_READV, "readv", "reading", "from", descriptor},
		{unix.SYS_PREAD64, "pread64", "reading", "from", descriptor},
		{unix.SYS_PREADV, "preadv", "reading", "from", descriptor},
		{unix.SYS_GETDENTS64, "getdents64", "reading", "from", descriptor},
		{unix.SYS_WRITE, "write", "writing", "to", descriptor},
		{unix.SYS_WRITEV, "writev", "writing", "to", descriptor},
		{unix.SYS_PWRITE64, "pwrite64", "writing", "to", descriptor},
		{unix.SYS_FSYNC, "fsync", "writing", "to", descriptor},
		{unix.SYS_FDATASYNC, "fdatasync", "writing", "to", descriptor},
		{unix.SYS_CLOSE, "close", "closing", "", descriptor},
		{unix.SYS_FLOCK, "flock", "waiting for a lock", "on", descriptor},
		{unix.SYS_FCNTL, "fcntl", "waiting for a lock", "on", descriptor},
		{unix.SYS_OPENAT, "openat", "opening a file", "", nothing},
		{unix.SYS_STATX, "statx", "looking for a file", "", nothing},
		{unix.SYS_READLINKAT, "readlinkat", "looking for a file", "", nothing},
		{unix.SYS_RECVFROM, "recvfrom", "receiving", "from", descriptor},
		{unix.SYS_RECVMSG, "recvmsg", "receiving", "from", descriptor},
		{unix.SYS_SENDTO, "sendto", "sending", "to", descriptor},
		{unix.SYS_SENDMSG, "sendmsg", "sending", "to", descriptor},
		{unix.SYS_CONNECT, "connect", "connecting", "", descriptor},
		{unix.SYS_ACCEPT, "accept", "waiting for a connection", "", nothing},
		{unix.SYS_ACCEPT4, "accept4", "waiting for a connection", "", nothing},
		{unix.SYS_PPOLL, "ppoll", "waiting for events", "on", pollList},
		{unix.SYS_PSELECT6, "pselect6", "waiting for events", "", nothing},
		{unix.SYS_EPOLL_PWAIT, "epoll_pwait", "waiting for events", "on", epollDescriptor},
		{unix.SYS_WAIT4, "wait4", "waiting for a child process", "", nothing},
		{unix.SYS_WAITID, "waitid", "waiting for a child process", "", nothing},
		// They return when the child executes its program, which may hang.
		{unix.SYS_CLONE, "clone", "starting a process", "", nothing},
		{unix.SYS_CLONE3, "clone3", "starting a process", "", nothing},
		{unix.SYS_IOCTL, "ioctl", "calling the driver", "of", descriptor},
		{unix.SYS_RT_SIGTIMEDWAIT, "rt_sigtimedwait", "waiting for a signal", "", nothing},
		{unix.SYS_RT_SIGSUSPEND, "rt_sigsuspend", "waiting for a signal", "", nothing},
		{unix.SYS_SEMTIMEDOP, "semtimedop", "waiting for another process", "", nothing},
		{unix.SYS_IO_GETEVENTS, "io_getevents", "waiting for a disk", "", nothing},
		{unix.SYS_IO_URING_ENTER, "io_uring_enter", "waiting for events", "", nothing},
		{unix.SYS_RESTART_SYSCALL, "restart_syscall", "sleeping", "", nothing},
	} {
		if c.number == number {
			return c
		}
	}
	if c := oldCall(number); c.does != "" {
		return c
	}
	return call{number: number, name: fmt.Sprintf("system call %d", number), does: "waiting"}
}
