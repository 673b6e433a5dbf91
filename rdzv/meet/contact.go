package meet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
	"rdzv/rdzv/meet/internal/keeper"
	"rdzv/rdzv/secret"
)

// planContact makes a plan with the key that rank 0 has generated. With --insecure the key only
// provides the public name of the job.
func planContact(c *Config, key secret.Key) (*plan, error) {
	p, err := planFor(c, &key)
	if err == nil && c.Insecure {
		p.key = nil
	}
	return p, err
}

// failed is the value that rank 0 puts if it cannot host the store.
const failed = "failed"

var (
	errContact = errors.New("cannot use the value that rank 0 has put through PMI")
	errRank0   = errors.New("rank 0's agent cannot host the store")
)

// maxContact is the maximum length of a contact in bytes. Every PMI implementation accepts values
// of that length.
const maxContact = 1000

// formatContact returns the value that rank 0 puts, KEY;PORT;ADDR,ADDR with as many addresses as
// fit. Port 0 means the port sequence.
func formatContact(key secret.Key, addrs []netip.Addr, port uint16) string {
	text := fmt.Sprintf("%s;%d;", key.Reveal(), port)
	for i, a := range addrs {
		if i > 0 {
			text += ","
		}
		if len(text)+len(a.String()) > maxContact {
			break
		}
		text += a.String()
	}
	return strings.TrimSuffix(text, ",")
}

// parseContact parses the result of formatContact. Errors do not repeat the text.
func parseContact(text string) (key secret.Key, addrs []netip.Addr, port int, err error) {
	if text == failed {
		return secret.Key{}, nil, 0, errRank0
	}
	words := strings.Split(text, ";")
	if len(words) != 3 {
		return secret.Key{}, nil, 0, errContact
	}
	key, err = secret.ParseKey(words[0])
	port, err2 := strconv.Atoi(words[1])
	if err != nil || err2 != nil || port < 0 || port > 65535 {
		return secret.Key{}, nil, 0, errContact
	}
	for word := range strings.SplitSeq(words[2], ",") {
		a, err := netip.ParseAddr(word)
		if err != nil {
			return secret.Key{}, nil, 0, errContact
		}
		addrs = append(addrs, a)
	}
	return key, addrs, port, nil
}

// addressesOf returns the addresses without their ports.
func addressesOf(list []netip.AddrPort) []netip.Addr {
	var addrs []netip.Addr
	for _, a := range list {
		addrs = append(addrs, a.Addr())
	}
	return addrs
}

// A task can use PMI only once: it ends with the first agent's finalize. So the first agent saves
// the contact of rank 0 for the agents after it in the same task. The contact is a secret and is
// kept in the memory of a process (package keeper) until Hydra's proxy on this host ends, which is
// the only process of the job that is certain to outlive all of its agents.

// savedContact is the plan for an agent after the first one in a task under Hydra; nil if there is
// no saved contact.
//
// An agent saves the contact when it ends, which is after a barrier of the first agents of all
// tasks. So an agent that finds a saved contact is not the first one of its task.
func savedContact(c *Config) (*plan, error) {
	proxy, ok := proxyOf(c)
	if !ok {
		return nil, nil
	}
	text, ok := readSaved(keeperAddr(c.RuntimeDir, proxy))
	if !ok {
		return nil, nil
	}
	key, addrs, _, err := parseContact(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use what an earlier agent of this task has saved: %w", err)
	}
	p, err := planContact(c, key)
	if err != nil {
		return nil, err
	}
	p.sources = []source{fixed("rank 0's host", 0, addrs, p.ports)}
	return p, nil
}

// saveContact saves the contact when this agent leaves, unless another agent on this host has saved
// it, or this agent is the task itself: no other agent follows then, in any task, because all tasks
// take part in every job. It ignores errors; the next agent in the task then fails and reports why.
func saveContact(c *Config, key secret.Key, addrs []netip.Addr, onLeave func(func())) {
	proxy, ok := proxyOf(c)
	if !ok {
		return
	}
	if self, err := procfs.Read(c.Proc, c.PID); err == nil && self.Parent == proxy.PID {
		return
	}
	onLeave(func() {
		l, err := net.ListenUnix("unix", keeperAddr(c.RuntimeDir, proxy))
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

// proxyOf returns Hydra's process at the other end of the PMI descriptor.
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

// keeperAddr returns the address of the keeper for a proxy: an abstract Unix address, which the
// kernel frees with the keeper. It depends on the user and identifies the proxy uniquely.
func keeperAddr(dir string, proxy procfs.Process) *net.UnixAddr {
	name := fmt.Sprintf("@rdzv/pmi/%x/%d-%d", secret.PublicName(dir), proxy.PID, proxy.Start)
	return &net.UnixAddr{Net: "unix", Name: name}
}

// savedTimeout limits the time in which the keeper must answer. It needs a few microseconds.
const savedTimeout = 5 * time.Second

// readSaved reads the contact from the keeper, if there is one. It ignores a process of another
// user, because every user can listen at the address.
func readSaved(addr *net.UnixAddr) (string, bool) {
	conn, err := net.DialUnix("unix", nil, addr)
	if err != nil {
		return "", false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(savedTimeout))
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
	controlErr := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return peer, errors.Join(err, controlErr)
}
