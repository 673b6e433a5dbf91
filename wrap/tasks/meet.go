package tasks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/peer"
	"rdzv/wrap/internal/frames"
)

const (
	// meetWait is how long a task that is not the first one waits for it to bind the address.
	meetWait = 250 * time.Millisecond
	// firstPause and lastPause are between two attempts to connect.
	firstPause, lastPause = time.Millisecond, 20 * time.Millisecond
	// welcomeWait is how long an agent may take to accept a connection: it prepares the job first.
	welcomeWait = 10 * time.Second
)

// Meet makes this process the agent, or a task of the agent, among those that meet at an
// address: exactly one of Listener and Conn is not nil without an error. The first task binds the
// address at once. Others connect, and bind it when nobody has 250 ms after the call. A task for
// which neither is possible gets an error: it is its own agent.
func Meet(addr string, first bool) (*Listener, *Conn, error) {
	if addr == "" {
		return nil, nil, errors.New("cannot find the agent of this node: no address")
	}
	if err := peer.CheckUser(os.Geteuid()); err != nil {
		return nil, nil, fmt.Errorf("cannot share an agent with other tasks: %w", err)
	}
	bindAt := time.Now().Add(meetWait)
	giveUpAt := bindAt.Add(meetWait)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if first || !time.Now().Before(bindAt) {
			l, err := bind(addr)
			if !errors.Is(err, unix.EADDRINUSE) {
				return l, nil, err
			}
		}
		c, err := connect(addr)
		again := errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EAGAIN)
		if !again || time.Now().After(giveUpAt) { // else nobody listens yet, or very many connect
			return nil, c, err
		}
		time.Sleep(pause)
	}
}

// bind binds the address, which is the election: one process can.
func bind(addr string) (*Listener, error) {
	fd, err := newStream()
	if err != nil {
		return nil, err
	}
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: addr}); err == nil {
		const backlog = 4096 // the kernel may allow less
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("cannot listen on %q: %w", addr, err)
	}
	return newListener(fd), nil
}

// connect connects to the agent, and waits until it has accepted that.
func connect(addr string) (*Conn, error) {
	fd, err := newStream()
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: addr})
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("cannot connect to %q: %w", addr, err)
	}
	c := &Conn{socket: frames.New(fd)}
	if c.agent, err = c.socket.CheckPeer(); err == nil {
		err = c.awaitWelcome()
	}
	if err != nil {
		c.socket.Close()
		return nil, fmt.Errorf("cannot use the agent at %q: %w", addr, err)
	}
	return c, nil
}

func newStream() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX,
		unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot create a socket: %w", err)
	}
	return fd, nil
}

// awaitWelcome waits until the agent has accepted the connection. It does not if it has enough
// tasks, or has ended.
func (c *Conn) awaitWelcome() error {
	c.socket.SetReadDeadline(time.Now().Add(welcomeWait))
	f, err := c.socket.Receive()
	frames.CloseAll(f.Files)
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("it has ended, or has all its tasks")
	case err == nil && f.Kind != welcome:
		return errors.New("it does not speak the protocol")
	}
	c.socket.SetReadDeadline(time.Time{})
	return err
}
