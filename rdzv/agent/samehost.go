package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/secret"
)

// claimHost makes this agent the only one on this host that looks for the others of its job, until
// release is called. Without a launcher, two agents of one host that have no node ranks are two
// jobs with the same command. The store refuses the one that joins later; before there is a store,
// this refuses the one that is started later. The error is an *rdzv.OccupiedError.
//
// The claim is an abstract Unix address, which the kernel frees with its process. Any user can
// listen at it, so another user's process does not count.
func (l *Local) claimHost() (release func(), err error) {
	p, c := l.Placement, l.Config
	if p.Launcher != envmap.None || p.NodeRank != envmap.Unknown || l.Agents == 1 {
		return func() {}, nil
	}
	var token []byte // agents with different tokens are of different jobs
	if !c.Insecure && c.Join == "" && !c.Etcd.Given() {
		token, _ = loadToken(l.tokenSource()) // its error is that of the search too
	}
	job := fmt.Sprintf("%d %q %q %q %q %d %v %q", os.Geteuid(), host.NodeID(), l.Job, c.Store, c.Join,
		c.PortLow, c.Etcd, c.Etcd.Prefix)
	name := fmt.Sprintf("@rdzv/joining/%x", secret.Expand(token, "joining\x00"+job, 16))
	addr := &net.UnixAddr{Net: "unix", Name: name}
	claim, err := net.ListenUnix("unix", addr)
	if err == nil {
		return func() { claim.Close() }, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		if pid := listenerAt(addr); pid > 0 {
			return nil, &rdzv.OccupiedError{Host: host.Name(), PID: pid}
		}
	}
	return func() {}, nil
}

// listenerAt is the process of this user that listens at addr; 0 if there is none, or if this pid
// namespace has no number for it.
func listenerAt(addr *net.UnixAddr) (pid int) {
	conn, err := net.DialUnix("unix", nil, addr)
	if err != nil {
		return 0
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil && int(peer.Uid) == os.Geteuid() {
			pid = int(peer.Pid)
		}
	})
	return pid
}
