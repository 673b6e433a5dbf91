// Package masterport chooses and reserves MASTER_PORT, the TCP port on which rank 0 of torch serves
// its store.
//
// Which agent needs a port is decided by the caller.
package masterport

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Held reserves a TCP port on all addresses of this host for a program that starts later: torch's
// store, which listens on MASTER_PORT. Until Close, the kernel assigns the port to no socket that
// asks for any free port. A program that binds the port by number with SO_REUSEADDR, as torch's
// store does, succeeds without Close.
type Held struct {
	port int
	held *os.File // bound, not listening
	name *os.File // see claim
}

// Hold reserves the given port, or with 0 a port that the kernel chooses from its ephemeral range.
// It fails if another program listens on the port or another Held on this host has it (the error
// wraps EADDRINUSE), or if port is not 0 to 65535.
func Hold(port int) (*Held, error) {
	if port < 0 || port > 65535 {
		return nil, fmt.Errorf("cannot reserve port %d: ports are 1 to 65535", port)
	}
	h, err := open(unix.AF_INET6, port)
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) {
		h, err = open(unix.AF_INET, port) // this host has no IPv6
	}
	if err != nil && port == 0 {
		return nil, fmt.Errorf("cannot reserve a free port: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot reserve port %d: %w", port, err)
	}
	return h, nil
}

// Port returns the number of the port.
func (h *Held) Port() int { return h.port }

// Close releases the port. A program that listens on it is not affected.
func (h *Held) Close() error { return errors.Join(h.held.Close(), h.name.Close()) }

func open(family, port int) (*Held, error) {
	if port != 0 {
		// Fail if another program listens on the port. The socket that holds the port cannot detect
		// that, because two sockets of one user with SO_REUSEPORT may share a port. A socket with only
		// SO_REUSEADDR conflicts with listening sockets, but not with connections in TIME_WAIT of an
		// earlier job on the same port.
		probe, err := bound(family, port, unix.SO_REUSEADDR)
		if err != nil {
			return nil, err
		}
		probe.Close()
	}
	// Only a dual-stack socket keeps the port from all binds to port 0. If the socket were bound to
	// one address, or to IPv4 only, the kernel would assign the port to sockets of the other kind.
	held, err := bound(family, port, unix.SO_REUSEADDR, unix.SO_REUSEPORT)
	if err != nil {
		return nil, err
	}
	h := &Held{held: held}
	if h.port, err = portOf(held); err == nil {
		h.name, err = claim(h.port)
	}
	if err != nil {
		held.Close()
		return nil, err
	}
	return h, nil
}

// claim makes this the only Held with that port on this host. Bound sockets that do not listen do
// not conflict with each other, but only one socket can have a given abstract Unix address. Like a
// port, that address belongs to the network namespace, and the kernel frees it when the process
// ends.
func claim(port int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	name := os.NewFile(uintptr(fd), "port claim")
	address := &unix.SockaddrUnix{Name: "@rdzv/port/" + strconv.Itoa(port)}
	if err := unix.Bind(fd, address); err != nil {
		name.Close()
		return nil, fmt.Errorf("another job has reserved it: %w", os.NewSyscallError("bind", err))
	}
	return name, nil
}

// bound returns a socket that is bound to the port on all addresses and does not listen. Child
// processes do not inherit it.
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
