// Package masterport chooses and reserves MASTER_PORT, the TCP port on which rank 0 of torch serves
// its store, and finds out which workers have connected to it.
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
	port   int
	held   *os.File   // bound, not listening
	claims []*os.File // of the port and of those above it, see claim
}

// Above is how many ports above a port that Hold has chosen are free at that time, because programs
// use MASTER_PORT+1 and so on for servers of their own. They are reserved only in so far as no other
// Held gets one of them: a program could not listen on a port that is bound here, unless it set
// SO_REUSEADDR.
const Above = 8

// Hold reserves the given port, or with 0 a port that the kernel chooses from its ephemeral range.
// It fails if another program listens on the port or another Held on this host has it (the error
// wraps EADDRINUSE), or if port is not 0 to 65535.
func Hold(port int) (*Held, error) {
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
	if err != nil {
		return nil, fmt.Errorf("cannot reserve port %d: %w", port, err)
	}
	return h, nil
}

// Port returns the number of the port.
func (h *Held) Port() int { return h.port }

// Close releases the port. A program that listens on it is not affected.
func (h *Held) Close() error {
	err := h.held.Close()
	for _, name := range h.claims {
		err = errors.Join(err, name.Close())
	}
	return err
}

// reserve reserves the given port, or chooses one, if possible one below free ones: a host with
// thousands of connections may have none.
func reserve(family, port int) (h *Held, err error) {
	if port != 0 {
		return open(family, port)
	}
	const tries = 100
	for try := range tries {
		h, err = open(family, 0)
		if errors.Is(err, unix.EADDRINUSE) { // it is above that of another job
			continue
		}
		if err != nil || h.claimAbove(family) || try == tries-1 {
			return h, err
		}
		h.Close()
	}
	return nil, err
}

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
		err = h.claim(h.port)
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// claimAbove claims the ports above, and tells whether they are free.
func (h *Held) claimAbove(family int) bool {
	for port := h.port + 1; port <= h.port+Above; port++ {
		if port > 65535 || h.claim(port) != nil {
			return false
		}
		probe, err := bound(family, port)
		if err != nil {
			return false
		}
		probe.Close()
	}
	return true
}

// claim makes this the only Held with that port on this host. Bound sockets that do not listen do
// not conflict with each other, but only one socket can have a given abstract Unix address. Like a
// port, that address belongs to the network namespace, and the kernel frees it when the process
// ends.
func (h *Held) claim(port int) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	name := os.NewFile(uintptr(fd), "port claim")
	address := &unix.SockaddrUnix{Name: "@rdzv/port/" + strconv.Itoa(port)}
	if err := unix.Bind(fd, address); err != nil {
		name.Close()
		return fmt.Errorf("another job has reserved it: %w", os.NewSyscallError("bind", err))
	}
	h.claims = append(h.claims, name)
	return nil
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
