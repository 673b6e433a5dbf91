package tasks

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/frames"
)

// Listener is the address that this process, the agent, has bound.
type Listener struct {
	file *os.File
	raw  syscall.RawConn
	wait time.Duration // lateWait
}

func newListener(fd int) *Listener {
	l := &Listener{file: os.NewFile(uintptr(fd), "node"), wait: lateWait}
	l.raw, _ = l.file.SyscallConn() // fails only without a file
	return l
}

const (
	// lateWait is how long after the last task another one may come.
	lateWait = 1500 * time.Millisecond
	// helloWait is how long a task that has been accepted may take to introduce itself.
	helloWait = 10 * time.Second
)

// Tasks waits for n other tasks, or until 1.5 s after the last one has come, or until ctx ends.
// Then it closes the address: tasks that come later are agents of their own, or meet there again.
// They are in the order in which they came.
func (l *Listener) Tasks(ctx context.Context, n int) []*Task {
	defer l.Close()
	defer context.AfterFunc(ctx, func() { _ = l.file.SetReadDeadline(time.Unix(1, 0)) })()
	tasks := make([]*Task, n)
	var greeting sync.WaitGroup
	for came := 0; came < n; {
		_ = l.file.SetReadDeadline(time.Now().Add(l.wait))
		if ctx.Err() != nil {
			break
		}
		s, err := l.accept()
		if err != nil { // nobody else comes
			break
		}
		_, err = s.CheckPeer()
		if err != nil || s.Send(welcome, nil) != nil {
			s.Close()
			continue
		}
		at := came
		greeting.Go(func() { tasks[at] = greet(s) })
		came++
	}
	l.Close()
	greeting.Wait()
	return compact(tasks)
}

// compact are those that are not nil.
func compact(tasks []*Task) (list []*Task) {
	for _, t := range tasks {
		if t != nil {
			list = append(list, t)
		}
	}
	return list
}

// accept waits for the next connection.
func (l *Listener) accept() (s *frames.Socket, err error) {
	errWait := l.raw.Read(func(fd uintptr) (done bool) {
		var conn int
		for err = unix.EINTR; errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED); {
			conn, _, err = unix.Accept4(int(fd), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		}
		if err == nil {
			s = frames.New(conn)
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	if errWait != nil {
		return nil, errWait
	}
	return s, err
}

// greet waits for what a task tells about itself; nil if it does not.
func greet(s *frames.Socket) *Task {
	s.SetReadDeadline(time.Now().Add(helloWait))
	f, err := s.Receive()
	var m helloMessage
	if err == nil {
		err = f.Decode(&m)
	}
	if err != nil || f.Kind != hello || len(f.Files) < 4 {
		frames.CloseAll(f.Files)
		s.Close()
		return nil
	}
	s.SetReadDeadline(time.Time{})
	return m.task(s, f.Files)
}

// Close closes the address if Tasks has not. Tasks that it has not returned become agents of their
// own.
func (l *Listener) Close() { _ = l.file.Close() }
