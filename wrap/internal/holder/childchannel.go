package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

// channel carries the orders of the agent and the reports to it.
type channel struct {
	socket  uintptr
	full    bool // out could not be sent
	ended   bool // the agent has ended
	in, out Record
	behind  Kind // to be reported after out; 0 is none
}

//go:nosplit
//go:norace
//go:nocheckptr
func (c *channel) poll() pollFD {
	switch {
	case c.ended:
		return pollFD{fd: -1}
	case c.full:
		return pollFD{fd: int32(c.socket), events: pollOut}
	}
	return pollFD{fd: int32(c.socket), events: pollIn}
}

// report sends a Record to the agent. If there is no room, it is sent later, and until then c is
// full: neither are orders taken nor children reaped, so that each of them can be reported.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *channel) report(k Kind, index int, a, b, third int64) {
	c.out.Kind, c.out.Index, c.out.A, c.out.B, c.out.C = k, index, a, b, third
	c.send()
}

// reportBehind reports k, which has no values, after what could not be sent.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *channel) reportBehind(k Kind) {
	if c.full {
		c.behind = k
		return
	}
	c.report(k, 0, 0, 0, 0)
}

// resend sends what could not be sent.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *channel) resend() {
	if c.full {
		c.full = false
		c.send()
	}
	if !c.full && c.behind != 0 {
		c.report(c.behind, 0, 0, 0, 0)
		c.behind = 0
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (c *channel) send() {
	if c.ended {
		return
	}
	const flags = syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL
	_, errno := sys(syscall.SYS_SENDTO, c.socket, uintptr(unsafe.Pointer(&c.out)),
		unsafe.Sizeof(c.out), flags)
	c.full = errno == syscall.EAGAIN
}

// receive tells whether there is an order, which is then c.in.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *channel) receive() bool {
	if c.full || c.ended {
		return false
	}
	n, errno := sys(syscall.SYS_RECVFROM, c.socket, uintptr(unsafe.Pointer(&c.in)),
		unsafe.Sizeof(c.in), syscall.MSG_DONTWAIT)
	if errno == syscall.EAGAIN || errno == syscall.EINTR {
		return false
	}
	c.ended = errno != 0 || n != unsafe.Sizeof(c.in)
	return !c.ended
}
