package keeper

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"
)

// A keeper listens at a socket file in a directory that only its user can access: no other user can
// have the address before it, or reach it. An abstract address would need no file, but every user
// could bind it first.

// listen makes the socket file. The error is syscall.EADDRINUSE if the file exists, also if nobody
// listens there any more.
func listen(dir, name string) (*os.File, error) {
	return socket(dir, name, func(fd int, addr syscall.Sockaddr) error {
		if err := syscall.Bind(fd, addr); err != nil {
			return os.NewSyscallError("bind", err)
		}
		return os.NewSyscallError("listen", syscall.Listen(fd, syscall.SOMAXCONN))
	})
}

// answerTimeout limits the time in which a keeper must answer. It needs a few microseconds.
const answerTimeout = 5 * time.Second

func connect(dir, name string) (*os.File, error) {
	return socket(dir, name, func(fd int, addr syscall.Sockaddr) error {
		limit := syscall.NsecToTimeval(answerTimeout.Nanoseconds())
		for _, option := range []int{syscall.SO_RCVTIMEO, syscall.SO_SNDTIMEO} {
			err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, option, &limit)
			if err != nil {
				return os.NewSyscallError("setsockopt", err)
			}
		}
		return os.NewSyscallError("connect", syscall.Connect(fd, addr))
	})
}

// socket calls use with a new socket and the address of the file. Its path may be longer than an
// address: it begins with the descriptor of the directory.
func socket(dir, name string, use func(fd int, addr syscall.Sockaddr) error) (*os.File, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	path := "/proc/self/fd/" + strconv.Itoa(int(d.Fd())) + "/" + name
	if err := use(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		syscall.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Ask returns the text of the keeper with that socket file. The error is syscall.ENOENT if no
// keeper has been started, and another one if it has been killed or does not answer.
func Ask(dir, name string) (string, error) {
	conn, err := connect(dir, name)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	text := make([]byte, maxText)
	n, err := conn.Read(text)
	return string(text[:n]), err
}

// Killed tells whether a keeper with that socket file has been killed: there is one at whose end
// its file was not removed.
func Killed(dir, name string) bool {
	conn, err := connect(dir, name)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	conn.Close()
	return false
}
