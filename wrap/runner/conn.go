package runner

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"rdzv/wrap"
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

// CodeLost is the exit code of a runner that has lost its agent.
const CodeLost = 123

// ErrAgent is the error of Serve without an order to exit.
var ErrAgent = errors.New("lost the agent of this node")

// Conn is the connection of this process, a runner, to its agent.
type Conn struct {
	socket *socket
	agent  int
}

// Agent is the pid of the agent.
func (c *Conn) Agent() int { return c.agent }

// Serve runs what the agent orders until it orders to exit, see Task.Exit. If the agent is gone, or
// ends the connection, Serve kills what runs and returns CodeLost and ErrAgent.
//
// The streams are those of the workers, which the agent gets too, as it gets more. Serve catches
// signals: see Task.Signals. The process is to exit when Serve has returned: to restore the action
// of each signal would take 3 % of its CPU time.
func (c *Conn) Serve(h Hello, streams [3]*os.File, more ...*os.File) (code, turn int, err error) {
	defer c.socket.close()
	s := &server{socket: c.socket, streams: streams}
	s.source = wrap.Signals(append(endSignals, workerSignals...)...)
	// As the agent does: the reader of the streams may die first.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	m := helloMessage{
		PID: os.Getpid(), Args: h.Args, Env: h.Env, Devices: h.Devices, Dir: text(h.Dir),
	}
	if err := c.socket.send(hello, m, append(streams[:], more...)...); err != nil {
		return CodeLost, 0, ErrAgent
	}
	return s.serve()
}

// endSignals are those that end the job, of which the agent decides.
var endSignals = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// workerSignals are those that the workers get from the runner.
var workerSignals = []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT,
	syscall.SIGWINCH}
