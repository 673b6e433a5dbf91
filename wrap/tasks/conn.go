package tasks

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"rdzv/wrap"
	"rdzv/wrap/internal/frames"
)

// Hello describes a task. Conn.Serve sends it to the agent, where Task.Hello returns it.
type Hello struct {
	PID  int      // set by Serve
	Args []string // as os.Args
	Env  []string // as os.Environ
	Dir  string   // the working directory
	// Devices are names of device files that the task can use. The package does not use them.
	Devices []string
}

// CodeLost is the exit code of a task that has lost its agent.
const CodeLost = 123

// ErrAgent is the error of Serve without an order to exit.
var ErrAgent = errors.New("lost the agent of this node")

// Conn is the connection of this process, a task, to its agent.
type Conn struct {
	socket *frames.Socket
	agent  int
}

// Agent is the pid of the agent.
func (c *Conn) Agent() int { return c.agent }

// Serve starts a runner, which runs what the agent orders, and waits until the agent orders to
// exit, see Task.Exit. If a runner dies it starts another one when nothing of its tree is left. If
// the agent has gone, or ends the connection, the runner kills what runs, and Serve returns
// CodeLost and ErrAgent.
//
// The streams are those of the workers, which the agent gets, as it gets more. Serve catches
// signals, and passes them on: see Task.Signals. The process is to exit when Serve has returned: to
// restore the action of each signal would take 3 % of its CPU time.
func (c *Conn) Serve(h Hello, streams [3]*os.File, more ...*os.File) (code, turn int, err error) {
	defer c.socket.Close()
	// The runner inherits what this process has now, before it catches signals.
	runner, err := wrap.StartTaskRunner()
	if err != nil {
		return CodeLost, 0, fmt.Errorf("%w: %w", ErrAgent, err)
	}
	received := make(chan os.Signal, maxSignals)
	wrap.Catch(received, wrap.TaskSignals...)
	// As the agent does: the reader of the streams may die first.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	m := helloMessage{
		PID: os.Getpid(), Runner: runner.PID(), Args: h.Args, Env: h.Env, Devices: h.Devices,
		Dir: []byte(h.Dir),
	}
	files := append(append([]*os.File{runner.Socket()}, streams[:]...), more...)
	if c.socket.Send(hello, m, files...) != nil {
		c.socket.Close()
	}
	_ = runner.Socket().Close()
	s := server{socket: c.socket, runner: runner, received: received, exits: make(chan exitOrder, 1)}
	go s.receive()
	return s.serve()
}

// maxSignals is how many signals are queued.
const maxSignals = 64

// server is a task that waits.
type server struct {
	socket   *frames.Socket
	runner   *wrap.TaskRunner
	received chan os.Signal
	exits    chan exitOrder // closed at the end of the connection
}

// receive receives the order to exit.
func (s *server) receive() {
	defer close(s.exits)
	var o exitOrder
	if f, err := s.socket.Receive(); err == nil && f.Kind == exit && f.Decode(&o) == nil {
		s.exits <- o
	}
}

func (s *server) serve() (code, turn int, err error) {
	for {
		select {
		case sig := <-s.received:
			_ = s.socket.Send(gotSignal, sig.(syscall.Signal)) // or the agent is lost
		case <-s.runner.Ended():
			if err := s.replaceRunner(); err != nil {
				return CodeLost, 0, fmt.Errorf("%w: %w", ErrAgent, err)
			}
		case o, ordered := <-s.exits:
			if !ordered {
				s.endRunner(lostWait)
				return CodeLost, 0, ErrAgent
			}
			s.endRunner(exitWait)
			return o.Code, o.Turn, nil
		}
	}
}

// replaceRunner starts another runner. That is of no use if the agent has ended, which serve then
// finds out.
func (s *server) replaceRunner() error {
	s.runner.Close()
	runner, err := wrap.StartTaskRunner()
	if err != nil {
		return err
	}
	s.runner = runner
	_ = s.socket.Send(otherRunner, runner.PID(), runner.Socket())
	return runner.Socket().Close()
}

// How long a task waits for the end of its runner, which a write to a log can delay for ever that
// hangs in the kernel: of one that has nothing to do, or that has to kill its tree because the
// agent has died.
const (
	exitWait = 2 * time.Second
	lostWait = 15 * time.Second
)

// endRunner waits until the runner has ended, as it does when the agent has closed its connection.
func (s *server) endRunner(wait time.Duration) {
	late := time.NewTimer(wait)
	defer late.Stop()
	for alive := true; alive; {
		select {
		case <-s.runner.Ended():
			alive = false
		case <-late.C:
			alive = false
		case sig := <-s.received:
			_ = s.socket.Send(gotSignal, sig.(syscall.Signal))
		}
	}
	s.runner.Close()
}
