// Package claim lets one process of a user claim a name on this host, until it ends.
//
// A claim is an abstract Unix address, which only one socket of a network namespace can have and
// which the kernel frees with its process. It depends on no directory, so that processes with
// different values of TMPDIR or XDG_RUNTIME_DIR exclude each other too, and processes in different
// network namespaces do not: they are on different hosts. Any user may listen at any address,
// which is why Take distinguishes this user's processes from others.
package claim

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"rdzv/internal/peer"
)

// A Claim is a name that this process has claimed.
type Claim struct {
	l      net.Listener
	closed chan struct{}
	done   sync.WaitGroup
}

// A TakenError means that another process of this user has the claim.
type TakenError struct {
	PID int // 0 if it has no number in this PID namespace
}

func (e *TakenError) Error() string { return fmt.Sprintf("claimed by process %d", e.PID) }

// ErrOtherUser means that a process of another user listens at the address, or may do, or one that
// does not answer.
var ErrOtherUser = errors.New("claimed by a process of another user")

// Take claims a name. If another process has it, the error is a *TakenError or ErrOtherUser.
func Take(name string) (*Claim, error) {
	addr := &net.UnixAddr{Net: "unix", Name: "@rdzv/" + name}
	l, err := net.ListenUnix("unix", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, takenAt(addr)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot claim %q: %w", addr.Name, err)
	}
	return held(l), nil
}

// held is the claim of a name at whose address this process listens.
func held(l net.Listener) *Claim {
	c := &Claim{l: l, closed: make(chan struct{})}
	c.done.Go(c.answer)
	return c
}

// acceptRetry is the time between two calls of accept(2) after an error.
const acceptRetry = 20 * time.Millisecond

// answer accepts those who ask whose claim this is, because the kernel refuses them when thousands
// are waiting.
func (c *Claim) answer() {
	for {
		conn, err := c.l.Accept()
		switch {
		case err == nil:
			conn.Close()
		case errors.Is(err, net.ErrClosed):
			return
		default: // such as no free file descriptor, which can be temporary
			select {
			case <-c.closed:
				return
			case <-time.After(acceptRetry):
			}
		}
	}
}

// Close releases the claim.
func (c *Claim) Close() {
	close(c.closed)
	c.l.Close()
	c.done.Wait()
}

// takenAt says whose process listens at addr.
func takenAt(addr *net.UnixAddr) error {
	conn, err := net.DialUnix("unix", nil, addr)
	if err != nil {
		return ErrOtherUser
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return ErrOtherUser
	}
	taken := ErrOtherUser
	_ = raw.Control(func(fd uintptr) {
		who, err := peer.Of(int(fd))
		if err == nil && int(who.Uid) == os.Geteuid() {
			taken = &TakenError{PID: int(who.Pid)}
		}
	})
	return taken
}
