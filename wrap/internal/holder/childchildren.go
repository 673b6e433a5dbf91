package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

// children are those of the holder: workers, and orphans, which are descendants of workers whose
// parents have ended.
type children struct {
	some bool // there may be some

	list    uintptr // "/proc/thread-self/children"
	buffer  *buffer // what next reads of that
	at, end uintptr
	path    [len(statPath) + 1]byte // of the stat file of one
	stat    buffer
	told    [256]uintptr // orphans that have received SIGTERM; 0 is free
}

// statPath has room for a pid.
const statPath = "/proc///////////stat"

// read reads the list of all children, as far as there is room. It returns false on a kernel
// without CONFIG_PROC_CHILDREN or in a sandbox without /proc.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *children) read() bool {
	n := c.buffer.read(c.list)
	c.at, c.end = 0, n
	return n != none
}

// next is the next one of that list; 0 is none.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *children) next() (pid uintptr) {
	for c.at < c.end {
		digit := c.buffer.byte(c.at)
		c.at++
		if digit < '0' || digit > '9' {
			return pid
		}
		pid = pid*10 + uintptr(digit-'0')
	}
	return 0
}

// run tells whether one of them is not stopped, which is likely if there is no list.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *children) run() bool {
	if !c.some || !c.read() {
		return c.some
	}
	for pid := c.next(); pid != 0; pid = c.next() {
		switch c.stat.state(c.pathOf(pid)) {
		case 'T', 'Z', 'X':
		default:
			return true
		}
	}
	return false
}

// pathOf is the path of the stat file of a process.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *children) pathOf(pid uintptr) uintptr {
	const first, end = uintptr(len("/proc/")), uintptr(len(statPath) - len("/stat"))
	path := unsafe.Pointer(&c.path)
	for at := end - 1; at >= first; at-- {
		digit := byte('/')
		if pid != 0 {
			digit = byte('0' + pid%10)
		}
		*(*byte)(unsafe.Add(path, at)) = digit
		pid /= 10
	}
	return uintptr(path)
}

// orphanChanged handles the change of an orphan's status (wait(2)).
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) orphanChanged(pid uintptr, status int32) {
	switch {
	case status == continued:
		w.continued = clock(clockBoottime)
	case status&0xff != stopped:
		w.children.ended(pid)
	}
}

// terminateOrphans sends SIGTERM to the orphans to which it has not. Their children receive it when
// they are orphans themselves. If there are very many, not all receive it.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *workers) terminateOrphans() {
	c := &w.children
	if !c.read() {
		return
	}
	for pid := c.next(); pid != 0; pid = c.next() {
		if w.find(pid) == nil && c.tell(pid) {
			w.signal(pid, syscall.SIGTERM, 0)
		}
	}
}

// tell notes that an orphan receives SIGTERM. It returns false if that has been noted, or if there
// is no room.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *children) tell(pid uintptr) bool {
	var free *uintptr
	for i := range c.told {
		switch told := &c.told[i]; *told {
		case pid:
			return false
		case 0:
			free = told
		}
	}
	if free == nil {
		return false
	}
	*free = pid
	return true
}

// ended is called when an orphan has been reaped: another process may get its pid.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *children) ended(pid uintptr) {
	for i := range c.told {
		if told := &c.told[i]; *told == pid {
			*told = 0
		}
	}
}
