package masterport

import (
	"encoding/binary"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The kernel's socket table by netlink, sock_diag(7): the sockets with a port, of this process's
// network namespace. It takes a fraction of the time of /proc/net/tcp, most of which is for empty
// buckets of the kernel's hash table.

// States of TCP sockets, as bits.
const (
	listenState = 1 << 10
	synSent     = 1 << 2
	otherStates = 1<<12 - 1 - listenState - 1<<6 // 6 is TIME_WAIT
)

// Instructions of INET_DIAG_REQ_BYTECODE that compare a port.
const (
	localAtLeast, localAtMost   = 2, 3
	remoteAtLeast, remoteAtMost = 4, 5
)

// listening and connected return the sockets that listen on a port, and those that are connected to
// it. The former is cheap: listening sockets have a table of their own.
func listening(port uint16) (inodes, error) {
	return dump(listenState, localAtLeast, localAtMost, port)
}

func connected(port uint16) (inodes, error) {
	return dump(otherStates-synSent, remoteAtLeast, remoteAtMost, port)
}

// hasConnections tells whether sockets other than listening ones have the port as their own. It is
// true if the kernel does not tell.
func hasConnections(port int) bool {
	const timeWait = 1 << 6 // such a socket has no inode: all are one
	found, err := dump(otherStates|timeWait, localAtLeast, localAtMost, uint16(port))
	return err != nil || len(found) > 0
}

func dump(states uint32, atLeast, atMost byte, port uint16) (inodes, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	request := request(states, filter(atLeast, atMost, port))
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	return receive(fd)
}

// request is a dump request: nlmsghdr, inet_diag_req, and the filter as an nlattr. TCPDIAG_GETSOCK
// is the older form of SOCK_DIAG_BY_FAMILY: one request is for IPv4 and IPv6, so that the kernel
// searches its hash table once.
func request(states uint32, filter []byte) []byte {
	const tcpdiagGetsock, bytecode = 18, 1
	const header, body, attribute = 16, 60, 4
	b := make([]byte, header+body+attribute, header+body+attribute+len(filter))
	native := binary.NativeEndian
	native.PutUint32(b, uint32(cap(b)))
	native.PutUint16(b[4:], tcpdiagGetsock)
	native.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	native.PutUint32(b[header+52:], states)
	native.PutUint16(b[header+body:], uint16(attribute+len(filter)))
	native.PutUint16(b[header+body+2:], bytecode)
	return append(b, filter...)
}

// filter is a program of two inet_diag_bc_op, each followed by the port with which it compares.
// Each has the offsets of what is next if it is true and if it is false, where 4 beyond the end
// rejects.
func filter(atLeast, atMost byte, port uint16) (program []byte) {
	for _, op := range []struct{ code, ifFalse byte }{{atLeast, 20}, {atMost, 12}} {
		program = append(program, op.code, 8)
		program = binary.NativeEndian.AppendUint16(program, uint16(op.ifFalse))
		program = append(program, 0, 0)
		program = binary.NativeEndian.AppendUint16(program, port)
	}
	return program
}

// receive returns the inodes of an answer, whose messages are inet_diag_msg.
func receive(fd int) (inodes, error) {
	const inode = 68 // its offset
	found := inodes{}
	buffer := make([]byte, 32<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			return nil, os.NewSyscallError("recvfrom", err)
		}
		messages, err := syscall.ParseNetlinkMessage(buffer[:n])
		if err != nil {
			return nil, os.NewSyscallError("netlink", err)
		}
		for _, m := range messages {
			switch {
			case m.Header.Type == unix.NLMSG_DONE:
				return found, nil
			case m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4:
				code := int32(binary.NativeEndian.Uint32(m.Data))
				return nil, os.NewSyscallError("sock_diag", syscall.Errno(-code))
			case len(m.Data) >= inode+4:
				found[uint64(binary.NativeEndian.Uint32(m.Data[inode:]))] = true
			}
		}
	}
}
