// Package query lets other processes of the same user on the same host ask an agent something, over
// a Unix socket. Both ends verify the user of the other one (SO_PEERCRED).
//
// The socket has an abstract address. Every process of the network namespace can connect to it,
// whatever its TMPDIR or XDG_RUNTIME_DIR is, and the kernel removes it with its process. It has no
// permissions, which is why the user is verified. Another user can take no address away from an
// agent, because its address contains a random number: whoever asks finds it in /proc/net/unix.
package query

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"rdzv/internal/peer"
)

// prefix begins the addresses of all agents.
const prefix = "@rdzv/agent/"

// Request is sent to an agent by another process, as JSON. Kind is kindJob or one of the questions
// that Agent.Answer knows.
type Request struct {
	Kind string `json:"kind"`
	Arg  string `json:"arg,omitempty"`
}

// reply is the agent's JSON reply to a Request. If Error is not "", there is no Value.
type reply struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
}

// The limits protect both ends from a peer that is broken, not from one that attacks: it is the
// same user's.
const (
	maxRequest = 64 << 10
	maxReply   = 256 << 20 // of all agents of a job
	readLimit  = 5 * time.Second
	serveLimit = 15 * time.Second // from the connection to the last byte of the reply
	lastWrite  = time.Second / 10 // of an agent that ends
)

// AnyUser asks the agents of all users, which answer root.
const AnyUser = -1

var errOtherUser = errors.New("the other end is another user's process")

// verify returns the process at the other end, when the connection was made. The error is
// errOtherUser unless it is known to be a process of one of these users.
func verify(conn *net.UnixConn, uids ...int) (who *syscall.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var unknown error
	err = raw.Control(func(fd uintptr) { who, unknown = peer.Of(int(fd)) })
	switch {
	case err != nil || who == nil:
		return nil, cmp.Or(err, unknown)
	case slices.Contains(uids, AnyUser):
		return who, nil
	case unknown != nil || !slices.Contains(uids, int(who.Uid)):
		return who, errOtherUser
	}
	return who, nil
}

func read(conn net.Conn, limit int64, to any) error {
	return json.NewDecoder(io.LimitReader(conn, limit)).Decode(to)
}

func write(conn net.Conn, value any) error { return json.NewEncoder(conn).Encode(value) }
