package masterport

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Held keeps a TCP port for a program that starts later on this host: torch's
// store, which listens on MASTER_PORT. Until Close nobody is given the port who
// does not ask for it by number, while a program that binds it with SO_REUSEADDR,
// as torch's store does, gets it at once; nothing has to be handed over.
type Held struct {
	port int
	held *os.File // bound, never listening
	name *os.File // see claim
}

// Hold holds the given port, or with 0 one that the kernel picks from its
// ephemeral range. A given port that another program listens on, or that another
// Held of this host holds, is an error that names it.
func Hold(port int) (*Held, error) {
	if port < 0 || port > 65535 {
		return nil, fmt.Errorf("cannot hold port %d: ports are 1 to 65535", port)
	}
	h, err := open(unix.AF_INET6, port)
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) {
		h, err = open(unix.AF_INET, port) // a host without IPv6
	}
	if err != nil && port == 0 {
		return nil, fmt.Errorf("cannot hold a free port: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot hold port %d: %w", port, err)
	}
	return h, nil
}

// Port is the number of the port.
func (h *Held) Port() int { return h.port }

// Close lets the port go. Whoever listens on it by then keeps it.
func (h *Held) Close() error { return errors.Join(h.held.Close(), h.name.Close()) }

func open(family, port int) (*Held, error) {
	if port != 0 {
		if err := nobodyListens(family, port); err != nil {
			return nil, err
		}
	}
	// A dual-stack socket alone keeps the port from every bind to port 0: one that
	// is bound to an address, or to IPv4, leaves it to those of the other kind.
	held, err := bound(family, port, unix.SO_REUSEADDR, unix.SO_REUSEPORT)
	if err != nil {
		return nil, err
	}
	if port, err = portOf(held); err != nil {
		held.Close()
		return nil, err
	}
	name, err := claim(port)
	if err != nil {
		held.Close()
		return nil, err
	}
	return &Held{port: port, held: held, name: name}, nil
}

// nobodyListens tells a port that another program listens on. The holder itself
// could not: two sockets of one user with SO_REUSEPORT may share a port. A probe
// with SO_REUSEADDR alone is refused by listeners, and not by connections of an
// earlier job on the same port that the kernel still remembers (TIME_WAIT).
func nobodyListens(family, port int) error {
	probe, err := bound(family, port, unix.SO_REUSEADDR)
	if err != nil {
		return err
	}
	return probe.Close()
}

// claim makes this the only Held of the number on this host. Bound sockets
// that do not listen let each other bind, so the claim is a name that one socket
// alone can have: an abstract one, which belongs to the network namespace, as
// ports do, and goes with the process.
func claim(port int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	name := os.NewFile(uintptr(fd), "claim of a port")
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@rdzv/port/" + strconv.Itoa(port)}); err != nil {
		name.Close()
		return nil, fmt.Errorf("another job holds it: %w", os.NewSyscallError("bind", err))
	}
	return name, nil
}

// bound returns a socket that is bound to the port on all addresses and does not
// listen. Programs that this process starts do not inherit it.
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
	switch a := address.(type) {
	case *unix.SockaddrInet6:
		return a.Port, nil
	case *unix.SockaddrInet4:
		return a.Port, nil
	default:
		return 0, fmt.Errorf("a socket with an address of type %T", address)
	}
}
