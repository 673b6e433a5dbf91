package wrap

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/descriptor"
)

// HeldSocket is a connected stream socket of this process that trees keep open, see Tree.Held:
// their runners have it too. If this process dies, the peer of the socket reads end of file, and
// not that the connection was reset, when nothing of the trees is left except what cannot be
// killed.
//
// If this process closes its own descriptors of the socket the connection therefore remains until
// the trees have ended, unless it calls shutdown(2) before.
type HeldSocket struct {
	socket *os.File
	// The ends of a pipe, which everybody has that has the socket. Whoever has closed own reads end of
	// file from others when all have closed it.
	others, own *os.File
}

// HoldSocket returns a HeldSocket for any number of calls of Run. The file belongs to it.
func HoldSocket(socket *os.File) (*HeldSocket, error) {
	others, own, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot hold a connection open: %w", err)
	}
	return &HeldSocket{socket, others, own}, nil
}

// files are those that the runner gets, which belong to s.
func (s *HeldSocket) files() [3]*os.File { return [3]*os.File{s.socket, s.others, s.own} }

// Close closes the files of s, which no Run may be using any more.
func (s *HeldSocket) Close() {
	_ = s.own.Close()
	_ = s.others.Close()
	_ = s.socket.Close()
}

// end is Close in a runner whose agent has died. If nobody else has s, at the latest after 1 s, the
// peer then reads end of file: without that the kernel would reset a connection with data that
// nobody has read.
func (s *HeldSocket) end() {
	defer s.Close()
	_ = s.own.Close()
	others, errOthers := descriptor.Of(s.others)
	socket, errSocket := descriptor.Of(s.socket)
	if errOthers == nil && errSocket == nil && awaitEnd(others) {
		_ = unix.Shutdown(socket, unix.SHUT_WR)
	}
}

// heldWait is how long a runner waits until nobody else has the socket.
const heldWait = time.Second

// awaitEnd waits for the end of a pipe, which may take as long as a process that has been killed
// needs to close its files.
func awaitEnd(fd int) bool {
	set := []unix.PollFd{{Fd: int32(fd)}}
	for {
		n, err := unix.Poll(set, int(heldWait.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n == 1
		}
	}
}
