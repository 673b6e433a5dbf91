package tasks

import (
	"context"
	"os"
	"sync"
	"syscall"

	"rdzv/wrap"
	"rdzv/wrap/internal/frames"
)

// Task is another task of this node, as its agent sees it. Its methods are safe for concurrent use,
// but one Run must have returned before the next begins.
type Task struct {
	socket  *frames.Socket
	hello   Hello
	files   [3]*os.File
	more    []*os.File
	signals *wrap.Source
	died    chan struct{} // closed at the end of the connection
	lost    chan struct{}

	mu       sync.Mutex
	runner   *wrap.Runner
	replaced chan struct{} // closed when there is another one
	exiting  bool          // there is to be no other one
}

// task is a task that has introduced itself, with its descriptors, at least four.
func (m *helloMessage) task(s *frames.Socket, fds []int) *Task {
	t := &Task{
		socket: s, signals: wrap.RemoteSignals(), lost: make(chan struct{}),
		died:   make(chan struct{}),
		runner: wrap.NewRunner(frames.New(fds[0]), m.Runner, m.PID), replaced: make(chan struct{}),
		hello: Hello{
			PID: m.PID, Args: m.Args, Env: m.Env, Dir: string(m.Dir), Devices: m.Devices,
		},
	}
	for i, fd := range fds[1:] {
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

// read takes what the task sends until it is gone, and nothing of its tree is left.
func (t *Task) read() {
	defer close(t.lost)
	for {
		f, err := t.socket.Receive()
		if err != nil || t.take(&f) != nil {
			break
		}
	}
	close(t.died) // before the socket is closed: see HasDied
	t.socket.Close()
	<-t.now().Lost()
	t.signals.Close()
}

// take handles what the task has sent. After an error the connection is useless.
func (t *Task) take(f *frames.Frame) error {
	switch f.Kind {
	case gotSignal:
		var s syscall.Signal
		err := f.Decode(&s)
		t.signals.Receive(s)
		return err
	case otherRunner:
		var pid int
		if err := f.Decode(&pid); err != nil || len(f.Files) != 1 {
			frames.CloseAll(f.Files)
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.exiting {
			frames.CloseAll(f.Files)
			return nil
		}
		t.runner.Close()
		t.runner = wrap.NewRunner(frames.New(f.Files[0]), pid, t.hello.PID)
		close(t.replaced)
		t.replaced = make(chan struct{})
		return nil
	}
	frames.CloseAll(f.Files)
	return nil
}

func (t *Task) now() *wrap.Runner {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.runner
}

// Hello returns the description that the task has passed to Conn.Serve.
func (t *Task) Hello() Hello { return t.hello }

// Files are its stdin, stdout and stderr. They are open until Close, and share their modes and
// offsets with those of the task.
func (t *Task) Files() [3]*os.File { return t.files }

// More are the files that the task has passed besides its streams. They are open until Close.
func (t *Task) More() []*os.File { return t.more }

// Signals is the source of the signals to the task, for Tree.Source. Nothing is received from it
// after Lost.
func (t *Task) Signals() *wrap.Source { return t.signals }

// Lost is closed when the task has died, or has exited as Exit has ordered. Nothing of its tree is
// left then, as far as it can be killed.
func (t *Task) Lost() <-chan struct{} { return t.lost }

// HasDied tells whether the process of the task has died, or has exited, also if its tree has not
// ended yet. If Run has returned wrap.ErrRunner it tells that from the death of the runner alone.
func (t *Task) HasDied() bool {
	ended := t.socket.HasEnded()
	select {
	case <-t.died:
		return true
	default:
		return ended
	}
}

// Run is wrap.Run in the task. If a runner has died it waits for the next one.
func (t *Task) Run(ctx context.Context, tree wrap.Tree) ([]wrap.Result, error) {
	for {
		t.mu.Lock()
		runner, replaced := t.runner, t.replaced
		t.mu.Unlock()
		select {
		case <-runner.Lost():
		default:
			return runner.Run(ctx, tree)
		}
		select {
		case <-replaced:
		case <-t.lost:
			return runner.Run(ctx, tree)
		case <-ctx.Done():
			return runner.Run(ctx, tree)
		}
	}
}

// ReadFile is wrap.Runner.ReadFile in the task.
func (t *Task) ReadFile(name string) ([]byte, error) { return t.now().ReadFile(name) }

// Remaining is wrap.Runner.Remaining in the task.
func (t *Task) Remaining() []wrap.Process { return t.now().Remaining() }

// Exit makes Serve return in the task: with a code, and with a turn, which says when the task is to
// exit and means nothing to this package. Run must have returned.
func (t *Task) Exit(code, turn int) {
	t.endRunner()
	_ = t.socket.Send(exit, exitOrder{code, turn}) // or it has died
}

// endRunner ends the runner, and any other that the task is about to start.
func (t *Task) endRunner() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exiting = true
	t.runner.Close()
}

// Close ends the connection: a task that has not been told to exit kills its workers, and exits
// with CodeLost. It returns when nothing uses the files any more.
func (t *Task) Close() {
	t.endRunner()
	t.socket.Close()
	<-t.lost
	for _, f := range append(t.files[:], t.more...) {
		_ = f.Close()
	}
}
