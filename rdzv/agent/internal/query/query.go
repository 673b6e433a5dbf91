// Package query lets other processes of the same user on the same host ask an agent something, over
// a Unix socket. Both ends verify the user of the other one (SO_PEERCRED).
//
// The socket has an abstract address. Every process of the network namespace can connect to it,
// whatever its TMPDIR or XDG_RUNTIME_DIR is, and the kernel removes it with its process. It has no
// permissions, which is why the user is verified. Another user can take no address away from an
// agent, because its address contains a random number: whoever asks finds it in /proc/net/unix.
package query

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"
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
	Value []byte `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
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

// peer is the process at the other end of a connection, when it was made.
func peer(conn *net.UnixConn) (cred unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return cred, err
	}
	controlled := raw.Control(func(fd uintptr) {
		var found *unix.Ucred
		found, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			cred = *found
		}
	})
	return cred, errors.Join(controlled, err)
}

// verify returns an error unless the other end is a process of one of these users.
func verify(conn *net.UnixConn, uids ...int) (unix.Ucred, error) {
	cred, err := peer(conn)
	if err == nil && !slices.Contains(uids, int(cred.Uid)) && !slices.Contains(uids, AnyUser) {
		err = errOtherUser
	}
	return cred, err
}

func read(conn net.Conn, limit int64, to any) error {
	return json.NewDecoder(io.LimitReader(conn, limit)).Decode(to)
}

func write(conn net.Conn, value any) error { return json.NewEncoder(conn).Encode(value) }
