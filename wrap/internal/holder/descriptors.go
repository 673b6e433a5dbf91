package holder

import (
	"os"
	"strconv"
	"syscall"
)

// descriptors are those that the holder keeps: copies above 2, so that they can replace the streams
// of a worker in any order.
type descriptors struct {
	list []uintptr
	err  error
}

// copies are the copies by their original.
type copies map[int]uintptr

// add returns a copy of a descriptor, which all users of c share.
func (d *descriptors) add(fd int, c copies) uintptr {
	if fd == Null {
		return none
	}
	if copied, ok := c[fd]; ok {
		return copied
	}
	copied, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 3)
	if errno != 0 {
		d.err = errno
		return none
	}
	c[fd], d.list = copied, append(d.list, copied)
	return copied
}

// addNull returns a descriptor of /dev/null.
func (d *descriptors) addNull() uintptr {
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		d.err = err
		return none
	}
	defer syscall.Close(null)
	return d.add(null, copies{})
}

func (d *descriptors) close() {
	for _, fd := range d.list {
		syscall.Close(int(fd))
	}
}

// highestDescriptor is the highest descriptor of this process, or 1023 without /proc. The holder
// looks at each up to this one, and closes all above it.
func highestDescriptor() uintptr {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 1023
	}
	highest := 2
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			highest = max(highest, fd)
		}
	}
	return uintptr(highest)
}
