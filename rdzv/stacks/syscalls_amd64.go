package stacks

import "golang.org/x/sys/unix"

// oldCall is one of the system calls that newer architectures do not have; zero if there is none
// with this number.
func oldCall(number int) call {
	for _, c := range [...]call{
		{unix.SYS_POLL, "poll", "waiting for events", "on", pollList},
		{unix.SYS_SELECT, "select", "waiting for events", "", nothing},
		{unix.SYS_EPOLL_WAIT, "epoll_wait", "waiting for events", "on", epollDescriptor},
		{unix.SYS_PAUSE, "pause", "waiting for a signal", "", nothing},
		{unix.SYS_VFORK, "vfork", "starting a process", "", nothing},
		{unix.SYS_OPEN, "open", "opening a file", "", nothing},
		{unix.SYS_STAT, "stat", "looking for a file", "", nothing},
		{unix.SYS_LSTAT, "lstat", "looking for a file", "", nothing},
		{unix.SYS_NEWFSTATAT, "newfstatat", "looking for a file", "", nothing},
	} {
		if c.number == number {
			return c
		}
	}
	return call{}
}
