package masterport

import (
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// errFiltered: a filter may end this process (SIGSYS) at a system call that it does not permit.
// systemd's SystemCallFilter=@system-service does at pidfd_getfd (systemd 252). Nothing is lost in
// containers: Docker's default profile permits pidfd_getfd only with CAP_SYS_PTRACE.
var errFiltered = errors.New("a seccomp filter is installed")

// isConnected tells whether one of a process's sockets is connected to the port, or being
// connected. It is an error if these sockets cannot be asked: the kernel is older than 5.6, this
// process has a seccomp filter, or it may not trace the other one (ptrace(2)). Yama with
// ptrace_scope 1 permits it for descendants of this process.
func isConnected(port uint16, pid int, sockets []procfs.Socket) (bool, error) {
	if len(sockets) == 0 {
		return false, nil
	}
	if mode, _ := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); mode != 0 {
		return false, errFiltered
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false, os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(process)
	for _, s := range sockets {
		peer, err := peerPort(process, s.FD)
		if err != nil || peer == port {
			return err == nil, err
		}
	}
	return false, nil
}

// peerPort is the other port of a process's socket of IPv4 or IPv6; 0 of other sockets.
func peerPort(process, fd int) (uint16, error) {
	socket, err := unix.PidfdGetfd(process, fd, 0) // a duplicate, which children do not inherit
	if errors.Is(err, unix.EBADF) {
		return 0, nil // the process has closed it
	}
	if err != nil {
		return 0, os.NewSyscallError("pidfd_getfd", err)
	}
	defer unix.Close(socket)
	// Unlike getpeername(2), SO_PEERNAME tells the address also while the socket is being connected.
	// The first 4 bytes of the address are its family and its port.
	value, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PEERNAME)
	address := binary.NativeEndian.AppendUint32(nil, uint32(value))
	family := binary.NativeEndian.Uint16(address)
	if err != nil || family != unix.AF_INET && family != unix.AF_INET6 {
		return 0, nil
	}
	return binary.BigEndian.Uint16(address[2:]), nil
}
