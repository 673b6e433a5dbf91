package wrap

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"rdzv/internal/descriptor"
	"rdzv/wrap/internal/holder"
)

// HeldSocket is a connected stream socket of this process that trees keep open, see Tree.Held:
// their holders have it too, and with package runner other tasks of this node. If this process
// dies, the peer of the socket reads end of file, and not that the connection was reset, when
// nothing of the trees is left except what cannot be killed.
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

// Files are for ReceiveHeldSocket in other processes. They belong to s.
func (s *HeldSocket) Files() [3]*os.File { return [3]*os.File{s.socket, s.others, s.own} }

// ReceiveHeldSocket returns the HeldSocket of another process, whose Files these are. They belong
// to it.
func ReceiveHeldSocket(files [3]*os.File) *HeldSocket {
	return &HeldSocket{files[0], files[1], files[2]}
}

// Close closes the files of s, which no Run may be using any more.
func (s *HeldSocket) Close() {
	_ = s.own.Close()
	_ = s.others.Close()
	_ = s.socket.Close()
}

// End is Close in a process that has received s, when the owner of the socket has died. If nobody
// else has s, at the latest after 1 s, the peer then reads end of file.
func (s *HeldSocket) End() {
	defer s.Close()
	_ = s.own.Close()
	others, errOthers := descriptor.Of(s.others)
	socket, errSocket := descriptor.Of(s.socket)
	if errOthers == nil && errSocket == nil && awaitEnd(others) {
		_ = unix.Shutdown(socket, unix.SHUT_WR)
	}
}

// awaitEnd waits for the end of a pipe, which may take as long as a process that has been killed
// needs to close its files.
func awaitEnd(fd int) bool {
	set := []unix.PollFd{{Fd: int32(fd)}}
	for {
		n, err := unix.Poll(set, int(holder.HeldWait.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n == 1
		}
	}
}

// held is s for a holder.
func (s *HeldSocket) held() (h *holder.Held, err error) {
	if s == nil {
		return nil, nil
	}
	h = &holder.Held{}
	for i, to := range []*int{&h.Socket, &h.Others, &h.Own} {
		var errOf error
		*to, errOf = descriptor.Of(s.Files()[i])
		err = errors.Join(err, errOf)
	}
	return h, err
}
