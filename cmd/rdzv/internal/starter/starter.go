// Package starter runs a job on several hosts from one machine: "rdzv exec --hosts". It has an
// agent started on each of them (package login does that by ssh), tells each what to run, and shows
// what the agents and their workers write. The agents run the job by themselves; what they know of
// the starter is in [Agent], the other end of its connections. Nothing else of rdzv knows it.
//
// Both directions of a connection are frames (frames.go). The starter decides nothing about the
// job but when to end it: on a signal, and when it has lost a node.
package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/internal/hint"
	"rdzv/rdzv/agent"
)

// Config is a job that is to be started.
type Config struct {
	// Hosts are the nodes, in the order of their ranks.
	Hosts []Host
	// Connect starts an agent on each of them, in this order, before ctx ends.
	Connect func(ctx context.Context) ([]*Connection, error)
	Start   Start // what they have in common
	Console *console.Console
	Setting console.Setting // of the terminals
	// Stdin is for rank 0; nil if it gets none.
	Stdin, Stdout, Stderr *os.File
	// Tag returns what is before each line of a rank; nil is nothing.
	Tag func(rank int, host string) string
	// Signals are those that this process has received.
	Signals <-chan os.Signal
	// Write appends to a file that an agent was to write here.
	Write func(file string, text []byte)
}

// Host is a node.
type Host struct {
	Name    string // as the user writes it
	Login   string // the argument of ssh: [user@]name; "" is this machine
	Workers int    // 0: as the flags say
}

// Connection leads to the process of rdzv on a node.
type Connection struct {
	Stdin  io.WriteCloser
	Stdout io.Reader
	// Wait waits for the end of the process at this end; its error has what that wrote last.
	Wait func() error
	// Close ends the connection, at once if ctx is done, and returns when its processes have ended.
	Close func(ctx context.Context)
}

// A FailedError says that a job has ended without an agent's exit code.
type FailedError struct {
	Err  error
	Code int
}

func (e *FailedError) Error() string { return e.Err.Error() }
func (e *FailedError) Unwrap() error { return e.Err }

// How long the starter waits.
const (
	// lossWait is how long after the loss of a node the others may end the job by themselves: they
	// know better why.
	lossWait = 3 * time.Second
	// othersWait is how long after the exit of the first agent the others may take.
	othersWait = 10 * time.Second
	// hardWait is how long after a second signal all connections are ended.
	hardWait = 10 * time.Second
	// closeWait is how long after an agent's exit its connection may take to end.
	closeWait = time.Second
	// failedWait is how long the line about a failure waits for the report, which replaces it.
	failedWait = time.Second
)

// job is a job that has been started.
type job struct {
	Config
	nodes   []*node
	events  chan event
	over    chan struct{} // closed when no more events are handled
	screens [2]*screen    // of stdout and stderr
	words   words

	firstSignal time.Time        // that ends the job
	hard        <-chan time.Time // when connections end by force
	mustEnd     <-chan time.Time // when the agents that are left must end
	why         string           // for that
}

// event is something that a node has told, or its end.
type event struct {
	node   *node
	report Report
	err    error // it is lost, unless it has exited
}

// Run starts the job and returns the exit code of its agents when all have ended. The error is
// about a job that has none; it is a *[FailedError] if it says which code that is.
func Run(c Config) (code int, err error) {
	connections, err := c.connect()
	if err != nil {
		return 0, err
	}
	j := &job{Config: c, events: make(chan event), over: make(chan struct{})}
	j.words.console = c.Console
	j.openScreens()
	for i, connection := range connections {
		n := newNode(i, c.Hosts[i], connection)
		j.nodes = append(j.nodes, n)
		go n.write()
		go n.read(j)
		n.order(Order{Start: c.startOf(i)})
	}
	if c.Stdin != nil {
		go j.nodes[0].forward(c.Stdin)
	}
	j.run()
	close(j.over)
	j.close()
	return j.result()
}

// connect starts the agents, unless a signal comes before that.
func (c *Config) connect() (list []*Connection, err error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan struct{})
	go func() { list, err = c.Connect(ctx); close(done) }()
	for {
		select {
		case <-done:
			if signal, is := errors.AsType[*agent.SignalError](context.Cause(ctx)); is {
				for _, one := range list {
					one.Close(ctx)
				}
				return nil, signal
			}
			return list, err
		case s := <-c.Signals:
			if number, is := s.(syscall.Signal); is && ends(number) {
				cancel(&agent.SignalError{Signal: number})
			}
		}
	}
}

// startOf is what node i is told.
func (c *Config) startOf(i int) *Start {
	start := c.Start
	start.Node, start.Nodes, start.Workers = i, len(c.Hosts), c.Hosts[i].Workers
	start.Input = c.Stdin != nil
	return &start
}

// openScreens opens where the output is shown. If stdout and stderr lead to the same place, the
// nodes send both as stdout, in order.
func (j *job) openScreens() {
	j.screens[0] = newScreen(j.Stdout, j.Setting, j.Tag)
	j.screens[1] = j.screens[0]
	if !j.Start.Joined {
		j.screens[1] = newScreen(j.Stderr, j.Setting, j.Tag)
	}
	j.Console.Follow(j.screens[1])
}

// tell lets run handle an event, unless it has ended.
func (j *job) tell(e event) {
	select {
	case j.events <- e:
	case <-j.over:
	}
}

// run handles what happens until all nodes have exited or are lost.
func (j *job) run() {
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for j.left() > 0 {
		select {
		case e := <-j.events:
			j.take(e)
		case s := <-j.Signals:
			j.signal(s)
		case <-beats.C:
			j.beat()
		case <-j.words.late():
			j.words.showFailed()
		case <-j.mustEnd:
			j.mustEnd = nil
			j.all(Order{End: j.why})
		case <-j.hard:
			for _, n := range j.nodes {
				n.lose(errors.New("ended by a second signal"))
			}
		}
	}
}

// left is how many nodes are neither lost nor have exited.
func (j *job) left() (n int) {
	for _, node := range j.nodes {
		if !node.ended() {
			n++
		}
	}
	return n
}

// all sends an order to all nodes that are left.
func (j *job) all(o Order) {
	for _, n := range j.nodes {
		if !n.ended() {
			n.order(o)
		}
	}
}

// take handles what a node has told.
func (j *job) take(e event) {
	n, r := e.node, e.report
	switch {
	case n.ended(): // it had been given up
	case e.err != nil:
		n.lose(e.err)
		j.endSoon(lossWait, fmt.Sprintf("rdzv exec --hosts has lost its connection to %s: %v",
			n.host.Name, e.err))
	case r.Store != nil:
		for _, other := range j.nodes[1:] {
			other.order(Order{Join: r.Store})
		}
	case r.Line != nil:
		if r.Line.About == Failure && !r.Line.Record.IsStatus() { // its workers have ended
			j.flush(n.index)
		}
		j.words.line(n.index, j.speaker(), j.named(*r.Line))
	case r.File != "":
		j.Write(r.File, r.Text)
	case r.Exit != nil:
		n.exit(*r.Exit)
		j.endSoon(othersWait, fmt.Sprintf("the agent on %s has ended", n.host.Name))
	}
}

// endSoon ends the nodes that are left after some time.
func (j *job) endSoon(wait time.Duration, why string) {
	if j.why == "" {
		j.why, j.mustEnd = why, time.After(wait)
	}
}

// named is a line of a node. A node names the one that was the first to act on a signal, also if
// this process has received the signal and passed it on.
func (j *job) named(l Line) Line {
	if l.About != Signalled {
		return l
	}
	l.About = Ended
	if _, what, is := strings.Cut(l.Record.Text, " received "); is && !j.firstSignal.IsZero() {
		machine, _ := os.Hostname()
		l.Record.Text = "rdzv exec --hosts on " + machine + " received " + what
	}
	return l
}

// speaker is the node whose lines about the job are shown.
func (j *job) speaker() int {
	for i, n := range j.nodes {
		if n.lost == nil {
			return i
		}
	}
	return 0
}

// beat tells all nodes that the starter is alive, and gives up those that are silent.
func (j *job) beat() {
	for _, n := range j.nodes {
		if n.ended() {
			continue
		}
		n.order(Order{})
		if n.silence += beat; n.heard.Swap(false) || n.busy.Load() {
			n.silence = 0
		}
		if n.silence >= silenceLimit {
			err := fmt.Errorf("silent for %v", silenceLimit)
			j.take(event{node: n, err: err})
		}
	}
}

// flush shows what is held of the output of a node.
func (j *job) flush(node int) {
	for _, s := range j.screens {
		s.flush(node)
	}
}

// close ends the connections, each some time after the agent's exit.
func (j *job) close() {
	late := time.After(closeWait)
	for _, n := range j.nodes {
		select {
		case <-n.done:
		case <-late:
			late = time.After(0)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	closed := make(chan struct{})
	for _, n := range j.nodes {
		go func() { n.connection.Close(ctx); closed <- struct{}{} }()
	}
	for range j.nodes {
		<-closed
	}
}

// lossHint says what to look at after the loss of nodes. All of them at once are rather this
// machine's loss.
func (j *job) lossHint() string {
	var lost []Host
	for _, n := range j.nodes {
		if n.lost != nil {
			lost = append(lost, n.host)
		}
	}
	switch {
	case len(lost) == 0 || j.hard != nil:
		return ""
	case len(lost) > 1 && len(lost) == len(j.nodes):
		return "is this machine connected to the nodes?"
	case lost[0].Login == "":
		return "has the kernel of this machine killed rdzv? dmesg | tail"
	}
	return fmt.Sprintf("is %s on, and has its kernel killed rdzv? ssh %s 'uptime; dmesg | tail'",
		lost[0].Name, lost[0].Login)
}

// result is the exit code of the job: that of the first agent that has one.
func (j *job) result() (code int, err error) {
	j.flush(-1)
	j.words.end()
	for _, n := range j.nodes {
		if n.lost != nil {
			err = errors.Join(err, fmt.Errorf("lost the connection to %s: %w", n.host.Name, n.lost))
		}
	}
	if err != nil {
		err = hint.With(err, j.lossHint())
	}
	if err != nil && j.words.ended() {
		j.Console.Verbose("%v", err)
		j.Console.Hint(j.lossHint())
		err = nil
	}
	for _, n := range j.nodes {
		if n.exited {
			if err != nil {
				return n.code, &FailedError{err, n.code}
			}
			return n.code, nil
		}
	}
	if err == nil {
		return agent.CodeLost, nil
	}
	return agent.CodeLost, &FailedError{err, agent.CodeLost}
}
