package frames

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/descriptor"
	"rdzv/internal/peer"
)

// Socket is one end of a connection, a stream. One goroutine receives; any may send.
type Socket struct {
	file    *os.File
	raw     syscall.RawConn
	patient bool // see BePatient
	ended   atomic.Bool
	sending sync.Mutex
	parser  parser
	space   []byte // for what is received next
}

// sendWait is how long a send may take without BePatient: the other side does not read.
const sendWait = 10 * time.Second

// New is for a connected descriptor, which belongs to it.
func New(fd int) *Socket {
	_ = unix.SetNonblock(fd, true) // cannot fail
	s := &Socket{file: os.NewFile(uintptr(fd), "socket")}
	s.raw, _ = s.file.SyscallConn() // fails only without a file
	return s
}

// Close ends the connection. What waits in receive or send returns.
func (s *Socket) Close() {
	_ = s.raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	_ = s.file.Close()
}

// EndSending ends what waits in Send, which then always fails.
func (s *Socket) EndSending() {
	s.ended.Store(true)
	_ = s.file.SetWriteDeadline(time.Unix(1, 0))
}

// BePatient lets a send take any time, from now on.
func (s *Socket) BePatient() { s.patient = true }

// SetReadDeadline is until when Receive waits; zero is for ever.
func (s *Socket) SetReadDeadline(t time.Time) { _ = s.file.SetReadDeadline(t) }

// HasEnded tells whether the other end has been closed.
func (s *Socket) HasEnded() (ended bool) {
	_ = s.raw.Control(func(fd uintptr) { ended = HasEnded(int(fd)) })
	return ended
}

// HasEnded tells whether the other end of a socket has been closed, as when its process has ended.
func HasEnded(fd int) bool {
	set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(set, 0)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll(set, 0)
	}
	return n == 1
}

// peer tells which process is at the other end, which has called connect(2) or listen(2).
func (s *Socket) peer() (who *syscall.Ucred, err error) {
	errRaw := s.raw.Control(func(fd uintptr) { who, err = peer.Of(int(fd)) })
	return who, errors.Join(err, errRaw)
}

// CheckPeer is the pid of the process at the other end, which must belong to this user.
func (s *Socket) CheckPeer() (pid int, err error) {
	switch who, err := s.peer(); {
	case err != nil:
		return 0, err
	case int(who.Uid) != os.Geteuid():
		return 0, fmt.Errorf("the other process belongs to user %d", who.Uid)
	default:
		return int(who.Pid), nil
	}
}

// Send sends a frame whose body is value as JSON; nil is no body.
func (s *Socket) Send(k uint8, value any, files ...*os.File) error {
	f := Frame{Kind: k}
	if value != nil {
		var err error
		if f.Body, err = json.Marshal(value); err != nil {
			return err
		}
	}
	for _, file := range files {
		fd, err := descriptor.Of(file)
		if err != nil { // not the error of a closed socket
			return fmt.Errorf("cannot pass file %q: %v", file.Name(), err)
		}
		f.Files = append(f.Files, fd)
	}
	defer runtime.KeepAlive(files)
	text, err := f.header()
	if err != nil {
		return err
	}
	return s.write(append(text, f.Body...), f.Files)
}

// write writes a frame. Its descriptors go with the first bytes.
func (s *Socket) write(text []byte, files []int) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	if !s.patient && !s.ended.Load() {
		_ = s.file.SetWriteDeadline(time.Now().Add(sendWait))
	}
	for len(text) > 0 {
		now := text
		var oob []byte
		if n := min(len(files), filesPerMessage); n > 0 {
			oob = unix.UnixRights(files[:n]...)
			if files = files[n:]; len(files) > 0 {
				now = text[:1] // and others with the next byte
			}
		}
		n, err := s.sendOnce(now, oob)
		if err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

func (s *Socket) sendOnce(text, oob []byte) (n int, err error) {
	errWait := s.raw.Write(func(fd uintptr) (done bool) {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			n, err = unix.SendmsgN(int(fd), text, oob, nil, unix.MSG_NOSIGNAL)
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case errors.Is(errWait, os.ErrDeadlineExceeded):
		return 0, errWait
	case errWait != nil: // package poll has its own error
		return 0, os.ErrClosed
	}
	return n, err
}

// Receive returns the next frame, whose descriptors belong to the caller. At the end of the
// connection the error is io.EOF.
func (s *Socket) Receive() (Frame, error) {
	for {
		f, ok, err := s.parser.next()
		if err != nil {
			s.parser.close()
		}
		if ok || err != nil {
			return f, err
		}
		text, files, err := s.receiveOnce()
		if err != nil {
			s.parser.close()
			return Frame{}, err
		}
		s.parser.add(text, files)
	}
}

const (
	receiveSize = 16 << 10
	oobSize     = 2048 // for filesPerMessage descriptors
)

func (s *Socket) receiveOnce() (text []byte, files []int, err error) {
	if s.space == nil {
		s.space = make([]byte, receiveSize+oobSize)
	}
	text, oob := s.space[:receiveSize], s.space[receiveSize:]
	var n, oobn, flags int
	errWait := s.raw.Read(func(fd uintptr) (done bool) {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			n, oobn, flags, _, err = unix.Recvmsg(int(fd), text, oob, unix.MSG_CMSG_CLOEXEC)
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case errWait != nil:
		return nil, nil, errWait
	case errors.Is(err, unix.ECONNRESET), err == nil && n == 0:
		return nil, nil, io.EOF
	case err != nil:
		return nil, nil, err
	}
	files, err = rights(oob[:oobn])
	if err == nil && flags&unix.MSG_CTRUNC != 0 {
		err = errors.New("cannot receive files: too many are open")
	}
	if err != nil {
		CloseAll(files)
	}
	return text[:n], files, err
}

// rights are the descriptors in control messages.
func rights(oob []byte) (files []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	for i := range messages {
		fds, errParse := unix.ParseUnixRights(&messages[i])
		files, err = append(files, fds...), errors.Join(err, errParse)
	}
	return files, err
}

// Decode reads the body of a frame, and closes its descriptors if that fails.
func (f *Frame) Decode(value any) error {
	err := json.Unmarshal(f.Body, value)
	if err != nil {
		CloseAll(f.Files)
		f.Files = nil
	}
	return err
}
