// Package masterport chooses and reserves MASTER_PORT, the TCP port on which rank 0 of torch serves
// its store, and finds out which workers have connected to it.
//
// Which agent needs a port is decided by the caller.
package masterport

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"rdzv/internal/portuser"
	"rdzv/internal/procfs"
)

// Reservation reserves a TCP port on all addresses of this host for a program that starts later:
// torch's store, which listens on MASTER_PORT. Until Close, the kernel assigns the port to no
// socket that asks for any free port. A program that binds the port by number with SO_REUSEADDR, as
// torch's store does, succeeds without Close.
type Reservation struct {
	port   int
	held   *os.File   // bound, not listening
	claims []*os.File // of the port and of those above it, see claim
}

// SparePorts is how many ports above a port that Hold has chosen are free at that time, because
// programs use MASTER_PORT+1 and so on for servers of their own. They are reserved only in so far
// as no other Reservation gets one of them: a program could not listen on a port that is bound
// here, unless it set SO_REUSEADDR.
const SparePorts = 8

// Hold reserves the given port, or with 0 a port that the kernel chooses from its ephemeral range.
// It fails if another program listens on the port or another Reservation on this host has it (the
// error wraps EADDRINUSE), or if port is not 0 to 65535.
func Hold(port int) (*Reservation, error) {
	if port < 0 || port > 65535 {
		return nil, fmt.Errorf("cannot reserve port %d: ports are 1 to 65535", port)
	}
	h, err := reserve(unix.AF_INET6, port)
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) {
		h, err = reserve(unix.AF_INET, port) // this host has no IPv6
	}
	if err != nil && port == 0 {
		return nil, fmt.Errorf("cannot reserve a free port: %w", err)
	}
	if err == nil {
		return h, nil
	}
	by := ""
	if user := portuser.Of(procfs.System, uint16(port)); user != "" {
		by = " (by " + user + ")"
	}
	return nil, fmt.Errorf("cannot reserve port %d: %w%s", port, err, by)
}

// HoldOne reserves a port that the kernel chooses, for a server that sets SO_REUSEADDR, and lets
// several processes of this user listen on it if each sets SO_REUSEPORT. Nothing is known of the
// ports above it.
func HoldOne() (*Reservation, error) {
	h, err := open(unix.AF_INET6, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) {
		h, err = open(unix.AF_INET, 0) // this host has no IPv6
	}
	if err != nil {
		return nil, fmt.Errorf("cannot reserve a free port: %w", err)
	}
	return h, nil
}

// Port returns the number of the port.
func (h *Reservation) Port() int { return h.port }

// Close releases the port. A program that listens on it is not affected.
func (h *Reservation) Close() error {
	err := h.held.Close()
	for _, name := range h.claims {
		err = errors.Join(err, name.Close())
	}
	return err
}

// reserve reserves the given port, or chooses one, if possible one below free ones: a host with
// thousands of connections may have none.
//
// Nobody can keep a chosen port from its job by claims, of which another user may have any number:
// the kernel gives a port to one socket, and the last try does without claims. A given port needs
// its claim, because a user who knows the port would rather choose another one than share it.
func reserve(family, port int) (h *Reservation, err error) {
	if port != 0 {
		h, err := open(family, port)
		if err != nil {
			return nil, err
		}
		if err := h.claim(port); err != nil {
			h.Close()
			return nil, err
		}
		return h, nil
	}
	const tries = 100
	for try := range tries {
		h, err = open(family, 0)
		if err != nil {
			return nil, err
		}
		if h.claim(h.port) == nil && h.claimSparePorts(family) || try == tries-1 {
			break
		}
		h.Close()
	}
	return h, nil
}

// open binds the given port, or one that the kernel chooses, which no other socket has: also no
// other Reservation, of whichever user. Then it lets sockets with SO_REUSEADDR have the port too.
//
// Connections of an earlier job on a given port, for example in TIME_WAIT, are in the way of such a
// socket, but not of a server with SO_REUSEADDR. While there are any, only the claim keeps other
// Reservations from the port.
func open(family, port int) (*Reservation, error) {
	held, err := bound(family, port)
	if errors.Is(err, unix.EADDRINUSE) && port != 0 && hasConnections(port) {
		held, err = besideConnections(family, port)
	}
	if err != nil {
		return nil, err
	}
	h := &Reservation{held: held}
	for _, option := range []int{unix.SO_REUSEADDR, unix.SO_REUSEPORT} {
		err = errors.Join(err, unix.SetsockoptInt(int(held.Fd()), unix.SOL_SOCKET, option, 1))
	}
	if err = os.NewSyscallError("setsockopt", err); err == nil {
		h.port, err = portOf(held)
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// besideConnections binds a port that has connections, unless another program listens on it. The
// socket that holds the port cannot detect that, because two sockets of one user with SO_REUSEPORT
// may share a port.
func besideConnections(family, port int) (*os.File, error) {
	probe, err := bound(family, port, unix.SO_REUSEADDR)
	if err != nil {
		return nil, err
	}
	probe.Close()
	return bound(family, port, unix.SO_REUSEADDR, unix.SO_REUSEPORT)
}

// bound returns a socket that is bound to the port on all addresses and does not listen. Child
// processes do not inherit it.
//
// Only a dual-stack socket keeps the port from all binds to port 0. If the socket were bound to one
// address, or to IPv4 only, the kernel would assign the port to sockets of the other kind.
func bound(family, port int, options ...int) (*os.File, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "held port")
	for _, o := range options {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, o, 1))
	}
	var address unix.Sockaddr = &unix.SockaddrInet4{Port: port}
	if family == unix.AF_INET6 {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0))
		address = &unix.SockaddrInet6{Port: port}
	}
	err = os.NewSyscallError("setsockopt", err)
	if err == nil {
		err = os.NewSyscallError("bind", unix.Bind(fd, address))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func portOf(f *os.File) (int, error) {
	address, err := unix.Getsockname(int(f.Fd()))
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	if a, ok := address.(*unix.SockaddrInet6); ok {
		return a.Port, nil
	}
	return address.(*unix.SockaddrInet4).Port, nil
}
