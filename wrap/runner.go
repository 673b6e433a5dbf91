package wrap

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
	"rdzv/wrap/internal/frames"
	"rdzv/wrap/internal/parent"
)

// Runner is a process that runs trees, one after another, as this process orders. Its methods are
// safe for concurrent use, but one Run must have returned before the next begins.
type Runner struct {
	conn    *frames.Socket
	pid     int
	process *parent.Runner // nil if another process has started it
	unread  chan struct{}  // closed when nothing more is received
	unshown atomic.Bool    // it has something to show on a terminal that is stopped
	lost    chan struct{}

	mu      sync.Mutex
	call    *call // the Run that is going on; nil if none is
	pending map[int]chan answer
	lastID  int
}

// StartRunner executes this program as a runner, which takes some milliseconds: Run then begins
// sooner. What a worker inherits (see the package comment) is what this process has now.
func StartRunner() (*Runner, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot start the runner: %w", os.NewSyscallError("socketpair", err))
	}
	defer unix.Close(ends[1])
	process, err := parent.Start(ends[1])
	if err != nil {
		unix.Close(ends[0])
		return nil, err
	}
	return newRunner(frames.New(ends[0]), process.PID, process), nil
}

// NewRunner is for a runner with this pid, of another process, the task, that is at the other end
// of a connection.
func NewRunner(conn *frames.Socket, pid, task int) *Runner {
	r := newRunner(conn, pid, nil)
	if pidfd, err := unix.PidfdOpen(pid, 0); err == nil {
		go r.continueTask(pidfd, task)
	}
	return r
}

// continuePause is how long a task may be stopped whose runner has died.
const continuePause = time.Second

// continueTask continues the task if it is stopped and the runner, which would have killed it, has
// died: the task is to kill what the runner has left.
func (r *Runner) continueTask(pidfd, task int) {
	_ = unix.SetNonblock(pidfd, true) // cannot fail; without it a thread would wait
	f := os.NewFile(uintptr(pidfd), "runner")
	go func() {
		<-r.unread
		_ = f.Close()
	}()
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Read(func(fd uintptr) bool {
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return n > 0 // it has ended
		})
	}
	if err != nil {
		return
	}
	for {
		select {
		case <-r.unread:
			return
		case <-time.After(continuePause):
		}
		if procfs.IsStopped(procfs.System, task) {
			_ = syscall.Kill(task, syscall.SIGCONT)
		}
	}
}

func newRunner(conn *frames.Socket, pid int, process *parent.Runner) *Runner {
	r := &Runner{
		conn: conn, pid: pid, process: process, lost: make(chan struct{}),
		unread:  make(chan struct{}),
		pending: map[int]chan answer{},
	}
	go r.read()
	return r
}

// Lost is closed when the runner has ended: it was killed, or closed. Nothing of its tree is left
// then, as far as it can be killed.
func (r *Runner) Lost() <-chan struct{} { return r.lost }

// exitWait is how long Close waits for the end of a runner, which a write to a log can delay for
// ever that hangs in the kernel.
const exitWait = 2 * time.Second

// Close ends the runner. Run must have returned. If a user has stopped the terminal where workers
// are shown (Ctrl-S), it waits until the rest has been shown.
func (r *Runner) Close() {
	r.conn.Close()
	if r.unshown.Load() {
		<-r.lost
	}
	late := time.NewTimer(exitWait)
	defer late.Stop()
	select {
	case <-r.lost:
	case <-late.C:
	}
}

// order sends an order. A runner that does not read it for 10 s is killed, as it is lost if it has
// died: neither is an error. There is one if the order could not be sent.
func (r *Runner) order(kind uint8, value any, files ...*os.File) error {
	err := r.conn.Send(kind, value, files...)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.kill()
	case errors.Is(err, os.ErrClosed), errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET):
	default:
		return err
	}
	return nil
}

// kill kills the runner, and thereby its workers.
func (r *Runner) kill() {
	if r.process != nil {
		r.process.Kill()
		return
	}
	_ = syscall.Kill(r.pid, syscall.SIGKILL)
}

// read takes what the runner sends until it is gone.
func (r *Runner) read() {
	defer close(r.lost)
	for {
		f, err := r.conn.Receive()
		if err != nil || r.take(&f) != nil {
			break
		}
	}
	r.conn.Close()
	close(r.unread)
	if r.process != nil {
		<-r.process.Done
	}
}

// take handles what the runner has sent. After an error the connection is useless.
func (r *Runner) take(f *frames.Frame) error {
	defer func() { frames.CloseAll(f.Files) }() // a runner sends none
	if f.Kind == answered {
		var a answer
		err := f.Decode(&a)
		r.mu.Lock()
		defer r.mu.Unlock()
		if to := r.pending[a.ID]; to != nil {
			to <- a
			delete(r.pending, a.ID)
		}
		return err
	}
	r.mu.Lock()
	c := r.call
	r.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.take(f)
}

// askWait is how long a runner may take to answer.
const askWait = 2 * time.Second

// ErrNoAnswer is the error of ReadFile if the runner does not answer in 2 s.
var ErrNoAnswer = errors.New("the runner does not answer")

// ReadFile reads a file below /proc as the runner sees it: on some systems what is there about a
// worker can be read only by its ancestors.
func (r *Runner) ReadFile(name string) ([]byte, error) {
	a, err := r.ask(readFile, name)
	if err != nil {
		return nil, err
	}
	return a.Text, a.Err.error()
}

// Remaining lists the processes of the tree whose parents have ended, and the workers that run. It
// is for messages: processes may start and end meanwhile. It returns nothing if the runner does not
// answer.
func (r *Runner) Remaining() []Process {
	a, _ := r.ask(remaining, "")
	return a.Processes
}

// ask sends a question and waits for the answer.
func (r *Runner) ask(kind uint8, name string) (a answer, err error) {
	to := make(chan answer, 1)
	r.mu.Lock()
	r.lastID++
	id := r.lastID
	r.pending[id] = to
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.pending, id)
	}()
	if err := r.order(kind, question{id, []byte(name)}); err != nil {
		return a, err
	}
	late := time.NewTimer(askWait)
	defer late.Stop()
	select {
	case a = <-to:
		return a, nil
	case <-r.lost:
		return a, ErrRunner
	case <-late.C:
		return a, ErrNoAnswer
	}
}
