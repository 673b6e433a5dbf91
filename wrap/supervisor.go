package wrap

import (
	"errors"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdzv/internal/boottime"
	"rdzv/internal/procfs"
	"rdzv/wrap/internal/frames"
	"rdzv/wrap/internal/parent"
	"rdzv/wrap/internal/tee"
)

// This process is a runner if it was executed as one. What an embedding program initialises before
// this package, it initialises in its runners too.
func init() {
	if len(os.Args) < 2 || os.Args[0] != parent.Name {
		return
	}
	if sockets, ok := inherited(os.Args[1:]); ok {
		runtime.LockOSThread()
		superviseAs(sockets)
	}
}

// inherited are the sockets that parent.Start has passed.
func inherited(args []string) (sockets []int, ok bool) {
	for _, arg := range args {
		fd, err := strconv.Atoi(arg)
		if err != nil {
			return nil, false
		}
		if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
			return nil, false
		}
		unix.CloseOnExec(fd)
		sockets = append(sockets, fd)
	}
	return sockets, true
}

// superviseAs makes this process a runner, whose main thread starts the workers. It does not
// return.
func superviseAs(sockets []int) {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // it has succeeded in the parent
	// If this process is stopped when its parent dies, it is continued, to kill the tree.
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGCONT), 0, 0, 0)
	setName(parent.Name)
	surviveSignals()
	s := &supervisor{
		conn: frames.New(sockets[0]), task: -1, parent: os.Getppid(), starter: newStarter(),
		children: newChildren(), reports: newReports(),
	}
	s.conn.BePatient()
	if len(sockets) > 1 {
		s.task = sockets[1]
	}
	go s.run()
	s.starter.run()
}

// setName sets the name of this process, whose main thread this is.
func setName(name string) {
	b, _ := unix.BytePtrFromString(name)
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(b)), 0, 0, 0)
}

// surviveSignals catches all signals that would end this process, except those that were ignored:
// workers are to ignore these, too, and have the default action of the others.
func surviveSignals() {
	unheard := make(chan os.Signal, 1)
	var sigs []syscall.Signal
	for s := syscall.Signal(1); s <= 64; s++ {
		switch s {
		case syscall.SIGURG: // Go's scheduler sends it
		case syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGKILL, syscall.SIGSTOP:
		case 32, 33: // the C library's
		default:
			sigs = append(sigs, s)
		}
	}
	catch(unheard, sigs) // without a reader: a signal for which there is no room is dropped
}

// supervisor is a runner at work: it carries out the orders of its agent. One goroutine has its
// state.
type supervisor struct {
	conn     *frames.Socket // to the agent
	task     int            // socket to the task, if the agent is not the parent; -1 if it is
	parent   int            // the agent, or the task
	starter  *starter
	children *children
	reports  *reports
	attempt  *attempt      // that runs; nil if none does
	done     chan struct{} // closed when the agent knows that nothing of the attempt is left
	unshown  []*tee.Screen // of former attempts
	lost     bool          // the agent, or the task, has ended
	muted    atomic.Bool   // nothing is reported any more
	garbage  garbage
}

// run carries out orders until the agent or the task has ended.
func (s *supervisor) run() {
	orders, taskEnded := receive(s.conn), atEnd(s.task)
	go s.children.watch()
	go s.reports.run()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		scan := false
		timer.Reset(s.untilTimer())
		select {
		case f, ok := <-orders:
			if !ok || s.take(&f) != nil {
				orders = nil
				s.abandon()
			}
		case <-taskEnded:
			taskEnded = nil
			s.desert()
		case r := <-s.starter.results:
			s.children.started()
			if a := s.attempt; a != nil && !a.finished {
				a.started(r)
			}
		case pid := <-s.children.changes:
			if status, ok := s.children.take(pid); ok && s.attempt != nil {
				s.attempt.changed(pid, status)
			}
		case <-s.outputChanges():
			s.attempt.outputs.noted()
		case <-s.done:
			s.unshown = append(s.unshown, s.attempt.outputs.unshown...)
			s.attempt, s.done = nil, nil
		case <-timer.C:
			scan = true
		}
		if s.attempt != nil {
			s.attempt.step(scan)
		}
		if s.attempt == nil && s.lost {
			s.showRest()
			os.Exit(0) // nothing is left
		}
		if s.attempt == nil || !s.attempt.queue.starts {
			s.garbage.collect(scan)
		}
	}
}

// showRest waits until terminals that were stopped have got everything, while the parent waits for
// it.
func (s *supervisor) showRest() {
	for _, screen := range s.unshown {
		for !screen.Await() && os.Getppid() == s.parent {
		}
	}
}

// receive delivers what a socket receives, and closes the channel at its end.
func receive(from *frames.Socket) <-chan frames.Frame {
	to := make(chan frames.Frame)
	go func() {
		defer close(to)
		for {
			f, err := from.Receive()
			if err != nil {
				return
			}
			to <- f
		}
	}()
	return to
}

// atEnd returns a channel that is closed when the other end of a socket, to which nothing is
// written, has been closed. It is nil without a socket.
func atEnd(fd int) <-chan struct{} {
	if fd < 0 {
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = unix.SetNonblock(fd, true) // cannot fail; without it a thread would wait
		f := os.NewFile(uintptr(fd), "task")
		_, _ = f.Read(make([]byte, 1))
	}()
	return done
}

func (s *supervisor) untilTimer() time.Duration {
	if s.attempt == nil {
		return time.Hour
	}
	return max(0, s.attempt.untilTimer())
}

func (s *supervisor) outputChanges() <-chan struct{} {
	if s.attempt == nil {
		return nil
	}
	return s.attempt.outputs.changed
}

// isAlone tells whether the agent or the task has ended, which run may learn only after orders that
// were sent before.
func (s *supervisor) isAlone() bool {
	return s.conn.HasEnded() || s.task >= 0 && frames.HasEnded(s.task)
}

// abandon kills what runs, because the agent or the task has ended.
func (s *supervisor) abandon() {
	if s.lost = true; s.attempt != nil {
		s.attempt.kill()
	}
}

// desert does that without a report: the agent reads the end of the connection when nothing is
// left.
func (s *supervisor) desert() {
	s.muted.Store(true)
	s.conn.EndSending()
	s.abandon()
}

// parentGroup is the process group of the parent.
func (s *supervisor) parentGroup() int {
	group, _ := unix.Getpgid(s.parent)
	return group
}

// watched are the processes that may not be stopped: the agent, and the task.
func (s *supervisor) watched(agent int) (pids []int) {
	if os.Getppid() == s.parent {
		pids = append(pids, s.parent)
	}
	if agent != s.parent && agent > 1 {
		pids = append(pids, agent)
	}
	return pids
}

// report sends a report, after those before.
func (s *supervisor) report(kind uint8, value any) {
	s.reports.add(func() { s.send(kind, value) })
}

// send sends a report at once. If that fails the agent is lost.
func (s *supervisor) send(kind uint8, value any) {
	if !s.muted.Load() {
		_ = s.conn.Send(kind, value)
	}
}

// take carries out an order. An error is one of the protocol, after which there is no other order.
func (s *supervisor) take(f *frames.Frame) error {
	switch f.Kind {
	case runTree:
		if s.done != nil {
			<-s.done // the agent knows that it ends
		}
		return s.begin(f)
	case readFile, remaining:
		return s.answer(f)
	}
	frames.CloseAll(f.Files)
	if s.attempt == nil || s.attempt.finished {
		return nil
	}
	return s.attempt.take(f)
}

// begin begins to run a tree.
func (s *supervisor) begin(f *frames.Frame) error {
	runtime.GOMAXPROCS(max(processors(4), 2)) // see starter about two
	var m treeMessage
	if err := f.Decode(&m); err != nil {
		return err
	}
	var files []*os.File
	for _, fd := range f.Files {
		files = append(files, os.NewFile(uintptr(fd), "of the agent"))
	}
	tree, err := m.tree(files)
	if err == nil {
		own := files
		if m.Held {
			own = files[:len(files)-3]
		}
		s.attempt, err = s.newAttempt(tree, m.Agent, own)
	}
	if err != nil {
		for _, file := range files {
			_ = file.Close()
		}
		s.attempt = nil
		s.report(treeEnded, doneMessage{Err: failureOf(err)})
		return nil
	}
	s.done = make(chan struct{})
	s.report(treeBegun, begunMessage{s.attempt.terminal})
	if l := m.Limit; l != nil {
		// Between the agent's order and now this process may have been stopped.
		s.attempt.lease.paused, s.attempt.lease.pausedAt = l.over(), boottime.Now()
		s.attempt.limit(*l)
	}
	return nil
}

// take carries out an order about the tree.
func (a *attempt) take(f *frames.Frame) (err error) {
	switch f.Kind {
	case stopTree:
		var o stopOrder
		if err = f.Decode(&o); err == nil {
			a.stop(&Stop{
				Delivered: o.Delivered, At: o.At.time(), Groups: o.Groups, DumpStacks: o.DumpStacks,
			})
		}
	case sendSignal:
		var m signalMessage
		switch err = f.Decode(&m); {
		case err != nil:
		case m.Groups:
			a.forwardStop(m.Signal)
		default:
			a.forward(m.event())
		}
	case startNow:
		a.queue.startNow()
	case dumpStacks:
		a.dumpAll = true
		a.announceDump(true)
	case dumped:
		a.dumpStacks()
	case killTree:
		a.kill()
	case setLimit:
		var l limit
		if err = f.Decode(&l); err == nil {
			a.limit(l)
		}
	}
	return err
}

// maxFile is how much of a file is read.
const maxFile = 8 << 20

// answer answers a question of the agent, in a goroutine of its own: a file may hang.
func (s *supervisor) answer(f *frames.Frame) error {
	var q question
	if err := f.Decode(&q); err != nil {
		return err
	}
	go func() {
		a := answer{ID: q.ID}
		if f.Kind == remaining {
			a.Processes = runningChildren()
		} else {
			text, err := readProc(string(q.Name))
			a.Text, a.Err = text, failureOf(err)
		}
		s.send(answered, a)
	}()
	return nil
}

// runningChildren are the children of this process that have not ended.
func runningChildren() []Process {
	return slices.DeleteFunc(named(ownChildren()), func(p Process) bool {
		stat, err := procfs.Read(procfs.System, p.PID)
		return err != nil || stat.State == 'Z'
	})
}

// readProc reads a file below /proc.
func readProc(name string) ([]byte, error) {
	if !strings.HasPrefix(path.Clean(name), "/proc/") {
		return nil, &os.PathError{Op: "read", Path: name, Err: errors.New("it is not below /proc")}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// reports are what the agent is told, in this order, by a goroutine of its own: an agent that is
// stopped does not read.
type reports struct {
	mu   sync.Mutex
	list []func()
	some chan struct{}
}

func newReports() *reports { return &reports{some: make(chan struct{}, 1)} }

// add adds a function that sends something. It may wait.
func (r *reports) add(send func()) {
	r.mu.Lock()
	r.list = append(r.list, send)
	r.mu.Unlock()
	select {
	case r.some <- struct{}{}:
	default:
	}
}

// run sends. It does not return.
func (r *reports) run() {
	for range r.some {
		r.mu.Lock()
		list := r.list
		r.list = nil
		r.mu.Unlock()
		for _, send := range list {
			send()
		}
	}
}
