package masterport

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A claim keeps the other Reservations on this host from a port, as an abstract Unix address that
// only one socket can have. Like a port, that address belongs to the network namespace, and the
// kernel frees it when the process ends. It is needed where the kernel lets sockets share a port:
// above MASTER_PORT, where nothing is bound, and beside connections of an earlier job.

// claimSparePorts claims the ports above, and tells whether they are free.
func (h *Reservation) claimSparePorts(family int) bool {
	for port := h.port + 1; port <= h.port+SparePorts; port++ {
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

// claim fails if another job has the claim, or a process of another user, which may have any number
// of them.
func (h *Reservation) claim(port int) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	name := os.NewFile(uintptr(fd), "port claim")
	address := &unix.SockaddrUnix{Name: "@rdzv/port/" + strconv.Itoa(port)}
	if err := unix.Bind(fd, address); err != nil {
		name.Close()
		return fmt.Errorf("another job or user has reserved it: %w", os.NewSyscallError("bind", err))
	}
	h.claims = append(h.claims, name)
	return nil
}
