package meet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
	"rdzv/rdzv/meet/internal/keeper"
	"rdzv/rdzv/secret"
)

// PMI can be used once in a task: the first agent's finalize closes it. So what that one has learnt
// is remembered for those who come after it in the same task. It is a secret, and the launcher's
// proxy on this host is the only process of the job that is sure to live until the last of them: so
// a process of ours lives as long as that, and has it in memory.

// remembered plans with what an earlier agent has learnt; nil if there is nothing.
//
// Agents leave it when they end, and so after the barrier that all tasks have had their first agent
// at: whoever finds it is not the first.
func remembered(c *Config) (*plan, error) {
	proxy, ok := proxyOf(c)
	if !ok {
		return nil, nil
	}
	text, ok := recall(memory(c.RuntimeDir, proxy))
	if !ok {
		return nil, nil
	}
	key, addrs, _, err := parseContact(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use what an earlier rdzv exec of this task has saved: %w", err)
	}
	p, err := planContact(c, key)
	if err != nil {
		return nil, err
	}
	p.sources = []source{fixed("rank 0's host", 0, addrs, p.ports)}
	return p, nil
}

// remember leaves what this agent has learnt when it ends, unless another on this host has, or it
// is the task itself: then no other comes after it, in no task, for all of them take part in every
// job. If it cannot, a second rdzv exec of this task cannot meet the others, and will say so; that
// is no reason for this one to fail.
func remember(c *Config, key secret.Key, addrs []netip.Addr, onEnd func(func())) {
	proxy, ok := proxyOf(c)
	if !ok {
		return
	}
	if self, err := procfs.Read(c.Proc, c.PID); err == nil && self.Parent == proxy.PID {
		return
	}
	onEnd(func() {
		l, err := net.ListenUnix("unix", memory(c.RuntimeDir, proxy))
		if err != nil {
			return
		}
		defer l.Close()
		if f, err := l.File(); err == nil {
			_ = keeper.Start(f, proxy.PID, formatContact(key, addrs, 0))
			f.Close()
		}
	})
}

// proxy is the process of the launcher at the other end of the descriptor.
func proxyOf(c *Config) (procfs.Process, bool) {
	fd, err := strconv.Atoi(c.Env["PMI_FD"])
	if err != nil || c.Proc == nil {
		return procfs.Process{}, false
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || peer.Pid <= 0 {
		return procfs.Process{}, false
	}
	p, err := procfs.Read(c.Proc, int(peer.Pid))
	return p, err == nil
}

// memory is where the keeper answers: an abstract address, which goes with its process. Its name is
// of this user, and of one process for good.
func memory(dir string, proxy procfs.Process) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("@rdzv/pmi/%x/%d-%d", secret.PublicName(dir), proxy.PID, proxy.Start)}
}

// recallTimeout is how long the keeper may take; it needs a few microseconds.
const recallTimeout = 5 * time.Second

// recall asks the keeper. One of another user is none: anybody can take the name.
func recall(addr *net.UnixAddr) (string, bool) {
	conn, err := net.DialUnix("unix", nil, addr)
	if err != nil {
		return "", false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(recallTimeout))
	if peer, err := peerOf(conn); err != nil || int(peer.Uid) != os.Geteuid() {
		return "", false
	}
	text := make([]byte, maxContact+1)
	n, err := conn.Read(text)
	return string(text[:n]), err == nil && n > 0
}

func peerOf(conn *net.UnixConn) (peer *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	bad := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return peer, errors.Join(err, bad)
}
