package runner

import (
	"errors"
	"os"
	"sync"

	"rdzv/wrap"
)

// Task is another task of this node, as its agent sees it. Its methods are safe for concurrent use,
// but one Run must have returned before the next begins.
type Task struct {
	socket  *socket
	process *os.Process
	hello   Hello
	files   [3]*os.File
	more    []*os.File
	signals chan wrap.Event
	lost    chan struct{}

	mu      sync.Mutex
	call    *call // the Run that is going on; nil if none is
	pending map[int]chan answer
	lastID  int
}

// newTask is for a task that has introduced itself, with its descriptors, at least three.
func newTask(s *socket, pid int, m helloMessage, fds []int) *Task {
	process, _ := os.FindProcess(pid) // never fails
	t := &Task{
		socket: s, process: process, signals: make(chan wrap.Event, maxSignals),
		lost: make(chan struct{}), pending: map[int]chan answer{},
		hello: Hello{
			PID: m.PID, Args: m.Args, Env: m.Env, Dir: string(m.Dir), Devices: m.Devices,
		},
	}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "of a task")
		if i < len(t.files) {
			t.files[i] = f
		} else {
			t.more = append(t.more, f)
		}
	}
	go t.read()
	return t
}

// Hello returns the description that the task has passed to Conn.Serve.
func (t *Task) Hello() Hello { return t.hello }

// Files are its stdin, stdout and stderr. They are open until Close, and share their modes and
// offsets with those of the task.
func (t *Task) Files() [3]*os.File { return t.files }

// More are the files that the task has passed besides its streams. They are open until Close.
func (t *Task) More() []*os.File { return t.more }

// Signals delivers the signals that the task has received and that concern the agent: SIGTERM,
// SIGINT, SIGHUP and SIGQUIT. It is never closed. Event.Shared is about the workers of the task.
// SIGUSR1, SIGUSR2, SIGCONT and SIGWINCH are for its workers.
func (t *Task) Signals() <-chan wrap.Event { return t.signals }

// Lost is closed when the runner is gone: it was killed, was stopped for too long, or has exited as
// Exit has ordered. Nothing of its tree is left then.
func (t *Task) Lost() <-chan struct{} { return t.lost }

// Exit makes Serve return in the task: with a code, and with a turn, which says when the task is to
// exit and means nothing to this package. Run must have returned. Lost is closed when Serve has.
func (t *Task) Exit(code, turn int) { _ = t.order(exit, exitOrder{code, turn}) }

// Close ends the connection: a runner that has not been told to exit kills its workers, and exits
// with CodeLost. It returns when nothing uses the files any more.
func (t *Task) Close() {
	t.socket.close()
	<-t.lost
	closeFiles(t.files[:])
	closeFiles(t.more)
	_ = t.process.Release()
}

// order sends an order. A runner that does not read it for sendWait is killed, as it is lost if it
// has died: neither is an error. There is one if the order cannot be sent to any runner.
func (t *Task) order(k kind, value any, files ...*os.File) error {
	err := t.socket.send(k, value, files...)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		t.kill()
	case errors.Is(err, errTooLarge):
		return err
	}
	return nil
}

// kill kills the runner, and thereby its workers.
func (t *Task) kill() { _ = t.process.Kill() }

// read takes what the runner sends until it is gone.
func (t *Task) read() {
	defer close(t.lost)
	for {
		f, err := t.socket.receive()
		if err != nil || t.take(&f) != nil {
			break
		}
	}
	t.socket.close()
}

// take handles what the runner has sent. After an error the connection is useless.
func (t *Task) take(f *frame) error {
	defer func() { closeAll(f.files) }() // a runner sends none
	switch f.kind {
	case gotSignal:
		var m signalMessage
		err := f.decode(&m)
		select {
		case t.signals <- m.event():
		default: // so many wait that nobody reads them
		}
		return err
	case answerFrame:
		var a answer
		err := f.decode(&a)
		t.mu.Lock()
		defer t.mu.Unlock()
		if to := t.pending[a.ID]; to != nil {
			to <- a
			delete(t.pending, a.ID)
		}
		return err
	}
	t.mu.Lock()
	c := t.call
	t.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.take(f)
}
