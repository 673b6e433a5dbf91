package starter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/internal/procfs"
	"rdzv/rdzv/agent"
)

const (
	// beat is how often both ends say that they are alive, silenceLimit after how long without a word
	// the other end is gone.
	beat         = 2 * time.Second
	silenceLimit = 15 * time.Second
)

// Agent is the starter's connection as the agent on a node has it.
type Agent struct {
	Start Start
	// Streams are for the workers. What they write to Stdout and Stderr is in the frames of
	// agent.Config.Framed.
	Stdin, Stdout, Stderr *os.File

	name   string // of this node
	in     *bufio.Reader
	out    *sender
	ctx    context.Context
	cancel context.CancelCauseFunc
	join   chan []string // gets the addresses of the store
	input  *input
	copied []*relay
	heard  atomic.Bool // something was received since the last look
	sleeps atomic.Bool // the starter is stopped

	mu       sync.Mutex
	catches  bool // the agent acts on signals
	received []syscall.Signal
}

// ErrNotStarted says that the starter has ended before it has said what to start.
var ErrNotStarted = errors.New("the starter has ended")

// Accept is called on a node: it reads from the starter what is to be run there.
func Accept(in io.Reader, out io.Writer, name string) (*Agent, error) {
	a := &Agent{
		name: name, in: bufio.NewReader(in), out: &sender{to: out}, join: make(chan []string, 1),
	}
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	if err := a.out.send(Report{Hello: name}); err != nil {
		return nil, err
	}
	order, err := receiveOrder(a.in)
	switch {
	case err == io.EOF:
		return nil, ErrNotStarted
	case err == nil && order.Start == nil:
		err = errForeign
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what to start: %w", err)
	}
	a.Start = *order.Start
	if err := a.openStreams(); err != nil {
		return nil, fmt.Errorf("cannot open the streams of the workers: %w", err)
	}
	go a.obey()
	go a.watch()
	return a, nil
}

// Context ends when the starter is gone, or has lost another node, with that as its cause; or, as
// long as the agent does not act on signals, with the first one.
func (a *Agent) Context() context.Context { return a.ctx }

// Name is that of this node.
func (a *Agent) Name() string { return a.name }

// Join waits for the addresses of the store.
func (a *Agent) Join() (addrs []string, err error) {
	select {
	case addrs = <-a.join:
		return addrs, nil
	case <-a.ctx.Done():
		return nil, context.Cause(a.ctx)
	}
}

// Found reports the addresses of the store of this node.
func (a *Agent) Found(addrs []string) { _ = a.out.send(Report{Store: addrs}) }

// Show shows a line at the starter, after what the workers have written before.
func (a *Agent) Show(about Subject, r console.Record) {
	if !r.IsStatus() {
		a.settle()
	}
	_ = a.out.send(Report{Line: &Line{about, r}})
}

// File is a file of this process that writes to one of the starter. close waits until all has been
// sent.
func (a *Agent) File(name string) (path string, close func(), err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	done := make(chan struct{})
	go func() {
		copyTo(read, func(b []byte) { a.Write(name, b) })
		read.Close()
		done <- struct{}{}
	}()
	path = fmt.Sprintf("/proc/self/fd/%d", write.Fd())
	return path, func() { write.Close(); <-done }, nil
}

// Write writes to a file of the starter.
func (a *Agent) Write(name string, text []byte) { _ = a.out.send(Report{File: name, Text: text}) }

// CatchSignals is called when the agent acts on signals: from then on this process gets those of
// the starter.
func (a *Agent) CatchSignals() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.catches = true
	for _, s := range a.received {
		_ = unix.Kill(os.Getpid(), s)
	}
	a.received = nil
}

// Exit reports the exit code of the agent, after all that the workers have written.
func (a *Agent) Exit(code int) {
	a.Stdout.Close()
	a.Stderr.Close()
	for _, r := range a.copied {
		r.drain()
	}
	_ = a.out.send(Report{Exit: &code})
}

// openStreams opens those of the workers.
func (a *Agent) openStreams() error {
	open := func(stream int) (*os.File, error) {
		read, write, err := os.Pipe()
		if err == nil {
			a.copied = append(a.copied, startRelay(read, stream, a.out))
		}
		return write, err
	}
	var err error
	if a.Stdout, err = open(1); err != nil {
		return err
	}
	if a.Stderr = a.Stdout; !a.Start.Joined {
		if a.Stderr, err = open(2); err != nil {
			return err
		}
	}
	if a.Start.Input && a.Start.Node == 0 {
		read, write, err := os.Pipe()
		if err != nil {
			return err
		}
		a.Stdin, a.input = read, startInput(write, a.out)
	}
	return nil
}

// obey carries out orders until the starter is gone.
func (a *Agent) obey() {
	for {
		o, err := receiveOrder(a.in)
		if err != nil {
			why := err.Error()
			if err == io.EOF {
				why = "it has ended, or ssh has"
			}
			a.lose(a.name + " has lost its connection to rdzv exec --hosts: " + why)
			return
		}
		a.heard.Store(true)
		a.carryOut(o)
	}
}

func (a *Agent) carryOut(o Order) {
	switch {
	case o.Join != nil:
		a.join <- o.Join
	case o.Signal != 0:
		a.signal(syscall.Signal(o.Signal))
	case o.Unread != 0:
		for _, r := range a.copied {
			if r.stream == o.Unread {
				r.from.Close()
			}
		}
	case a.input != nil && (o.Input != nil || o.EndOf):
		a.input.add(o.Input, o.EndOf)
	case o.Sleep, o.Wake:
		if a.sleeps.Swap(o.Sleep) != o.Sleep {
			suspend(procfs.System, o.Sleep)
		}
	case o.End != "":
		a.lose(o.End)
	}
}

// signal lets this process receive a signal. Before the agent acts on it, it ends the agent.
func (a *Agent) signal(s syscall.Signal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.catches {
		_ = unix.Kill(os.Getpid(), s)
		return
	}
	if a.received = append(a.received, s); s != syscall.SIGUSR1 && s != syscall.SIGUSR2 {
		a.cancel(&agent.SignalError{Signal: s})
	}
}

// lose ends the part of this node.
func (a *Agent) lose(why string) {
	if a.sleeps.Swap(false) {
		suspend(procfs.System, false)
	}
	a.cancel(&agent.LauncherDiedError{Name: why})
}

// watch says that this node is alive, and ends its part when the starter has been silent. It
// counts, so that a time in which this process itself was stopped is not silence.
func (a *Agent) watch() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	silent := time.Duration(0)
	for range tick.C {
		if a.out.send(Report{}) != nil {
			return // obey notices it too
		}
		if silent += beat; a.heard.Swap(false) || a.sleeps.Load() {
			silent = 0
		}
		if silent >= silenceLimit {
			a.lose(fmt.Sprintf("%s has not heard from rdzv exec --hosts for %v", a.name, silenceLimit))
		}
	}
}

// settle waits, a little, until what the workers have written has been sent.
func (a *Agent) settle() {
	for tries, empty := 0, 0; tries < 100 && empty < 2; tries++ { // it may just have been read
		if empty++; slices.ContainsFunc(a.copied, (*relay).pending) {
			empty = 0
		}
		time.Sleep(time.Millisecond)
	}
}

// relay sends what workers write to a stream, which comes in frames of agent.Config.Framed.
type relay struct {
	from   *os.File
	stream int
	busy   atomic.Bool
	done   chan struct{}
}

func startRelay(from *os.File, stream int, to *sender) *relay {
	r := &relay{from: from, stream: stream, done: make(chan struct{})}
	if raw, err := from.SyscallConn(); err == nil { // otherwise, or if it fails, the pipe is smaller
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
	go r.run(to)
	return r
}

// run sends frames until the end. Parts of one worker that follow each other are sent together.
func (r *relay) run(to *sender) {
	defer close(r.done)
	defer r.from.Close() // so that workers notice that nobody reads what they write
	in := bufio.NewReaderSize(r.from, maxPart)
	for {
		out := Output{Stream: r.stream, Rank: -1}
		for out.Rank < 0 || in.Buffered() > 0 && len(out.Text) < maxPart {
			rank, text, err := readPart(in)
			if err != nil {
				return
			}
			r.busy.Store(true)
			if out.Rank >= 0 && rank != out.Rank {
				_ = to.send(Report{Output: &out})
				out.Text = nil
			}
			out.Rank, out.Text = rank, append(out.Text, text...)
		}
		if to.send(Report{Output: &out}) != nil {
			return
		}
		r.busy.Store(in.Buffered() > 0)
	}
}

// maxPart is how much of the output is sent at once.
const maxPart = 64 << 10

// readPart reads a frame: the rank, " ", the length, "\n", and the text.
func readPart(in *bufio.Reader) (rank int, text []byte, err error) {
	header, err := in.ReadString('\n')
	if err != nil {
		return 0, nil, err
	}
	first, second, _ := strings.Cut(strings.TrimSuffix(header, "\n"), " ")
	rank, badRank := strconv.Atoi(first)
	n, badLength := strconv.Atoi(second)
	if badRank != nil || badLength != nil || n < 0 || n > maxPart {
		return 0, nil, errForeign
	}
	text = make([]byte, n)
	_, err = io.ReadFull(in, text)
	return rank, text, err
}

// drainWait is how long a stream may have nothing to read although somebody can still write to it.
const drainWait = time.Second

// drain waits until all has been sent, however long the starter takes to show it.
func (r *relay) drain() {
	const step = 20 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	for idle := time.Duration(0); idle < drainWait; {
		select {
		case <-r.done:
			return
		case <-tick.C:
		}
		if idle += step; r.pending() {
			idle = 0
		}
	}
}

// pending tells whether something is left to be sent.
func (r *relay) pending() bool {
	n := 0
	raw, err := r.from.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return err == nil && (n > 0 || r.busy.Load())
}

// input is what rank 0 is to read. It has no limit of its own: the starter sends no more than
// inputWindow that has not been taken.
type input struct {
	to    *os.File
	out   *sender
	mu    sync.Mutex
	more  *sync.Cond
	text  []byte
	ended bool
}

// inputWindow is how much input may be on its way.
const inputWindow = 256 << 10

func startInput(to *os.File, out *sender) *input {
	in := &input{to: to, out: out}
	in.more = sync.NewCond(&in.mu)
	go in.run()
	return in
}

func (in *input) add(text []byte, ended bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.text, in.ended = append(in.text, text...), in.ended || ended
	in.more.Signal()
}

// run writes what has come. Input that nobody reads is taken too.
func (in *input) run() {
	defer in.to.Close()
	for {
		in.mu.Lock()
		for len(in.text) == 0 && !in.ended {
			in.more.Wait()
		}
		text := in.text
		in.text = nil
		in.mu.Unlock()
		if len(text) == 0 {
			return
		}
		_, _ = in.to.Write(text)
		_ = in.out.send(Report{Taken: len(text)})
	}
}

// copyTo calls to with what is read until the end.
func copyTo(from io.Reader, to func([]byte)) {
	buffer := make([]byte, maxPart)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			to(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}
