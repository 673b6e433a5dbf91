package wrap

import (
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// Signalled says which processes get a signal that this process gets.
type Signalled int

const (
	// Alone: this process alone, as from kill(1), timeout(1), a container engine or systemd-run; in
	// the foreground of a terminal, and in a job of a shell there, all processes of the job, which
	// the workers then belong to. Otherwise each worker has a process group.
	Alone Signalled = iota
	// Launched: a launcher signals this process or its process group. Workers have process groups of
	// their own, which get what is passed to them; but see Alone about the foreground of a terminal.
	Launched
	// Everyone: each process is signalled, as in a task of Slurm or a systemd unit.
	Everyone
)

// Event is a signal that this process received.
type Event struct {
	Signal syscall.Signal
	// Shared says that the workers have received the signal too, see Signalled: with Everyone each
	// signal, and in the foreground of a terminal SIGINT, SIGQUIT, SIGHUP, SIGCONT and SIGWINCH. To
	// forward it would deliver it twice.
	Shared bool
	// At is when this process received it.
	At time.Time
}

// isShared tells whether the workers of a tree receive a signal that their agent or task receives.
// terminal says that they are in its process group.
func (s Signalled) isShared(sig syscall.Signal, terminal bool) bool {
	return s == Everyone || terminal && slices.Contains(fromTerminal, sig)
}

// fromTerminal are the signals that a terminal, or a shell that controls jobs, sends to a whole
// process group.
var fromTerminal = []syscall.Signal{
	syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGCONT, syscall.SIGWINCH,
}

// stopSignals stop a process unless it catches or ignores them. Terminals and shells send them.
// With Tree.JobControl this process catches them, so that they do not stop it before its workers
// have stopped: an editor or a debugger restores the terminal first.
var stopSignals = []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}

// Source receives the signals to a process. Whether they are shared is known during a Run with
// this Tree.Source; at other times there are no workers.
type Source struct {
	// C receives every requested signal. It is never closed.
	C <-chan Event

	remote bool // to another process than this one
	out    chan Event
	caught chan os.Signal
	stop   chan struct{}
	done   chan struct{}

	mu    sync.Mutex
	calls map[*call]bool
	stops bool                         // it catches stopSignals
	last  map[syscall.Signal]time.Time // when all processes last received a signal
	marks []chan struct{}              // to be closed at the next mark
}

const (
	// maxSignals is how many signals may wait.
	maxSignals = 64
	// mark is a signal that this process sends to itself: when it has been received all those have
	// been that came before, because the kernel delivers the lowest of several first. That is so for
	// each thread: if two of them take a signal and the mark at the same moment, the mark may be
	// first.
	mark = syscall.Signal(63)
	// markWait is how long that may take.
	markWait = time.Second
)

// Signals makes this process catch sigs and returns the source of them. Signals that were ignored
// when this process started (SIGHUP under nohup, SIGINT in a background job of a script) stay
// ignored.
//
// As always in Unix, a signal that is sent again before the process has received the first one is
// received once.
func Signals(sigs ...syscall.Signal) *Source {
	s := newSource()
	catch(s.caught, sigs)
	signal.Notify(s.caught, mark)
	go s.run()
	return s
}

// RemoteSignals returns the source of signals to another process, of which Receive tells.
func RemoteSignals() *Source {
	s := newSource()
	s.remote = true
	go s.run()
	return s
}

// Receive is called when the process of a remote source has received a signal.
func (s *Source) Receive(sig syscall.Signal) {
	select {
	case s.caught <- sig:
	case <-s.done:
	}
}

func newSource() *Source {
	s := &Source{
		out:    make(chan Event),
		caught: make(chan os.Signal, maxSignals),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
		calls:  map[*call]bool{},
		last:   map[syscall.Signal]time.Time{},
	}
	s.C = s.out
	return s
}

// catch passes those of sigs to c that were not ignored when this process started.
func catch(c chan<- os.Signal, sigs []syscall.Signal) {
	sets, _ := procfs.ReadSignals(procfs.System, os.Getpid()) // empty without /proc
	for _, s := range sigs {
		if !sets.Ignored.Has(s) && !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
}

// Close restores the default actions of the signals. Runs with this source must have returned.
func (s *Source) Close() {
	signal.Stop(s.caught)
	close(s.stop)
	<-s.done
}

// run passes signals on.
func (s *Source) run() {
	defer close(s.done)
	var ready []Event
	for {
		out, first := s.out, Event{}
		if len(ready) == 0 {
			out = nil
		} else {
			first = ready[0]
		}
		select {
		case sig := <-s.caught:
			if e, ok := s.take(sig.(syscall.Signal)); ok {
				ready = append(ready, e)
			}
		case out <- first:
			ready = ready[1:]
		case <-s.stop:
			return
		}
	}
}

// take handles a signal to this process. It is not ok if that is none for C.
func (s *Source) take(sig syscall.Signal) (e Event, ok bool) {
	e = Event{Signal: sig, At: time.Now()}
	s.mu.Lock()
	switch {
	case s.remote:
	case sig == mark:
		for _, reached := range s.marks {
			close(reached)
		}
		s.marks = nil
		s.mu.Unlock()
		return e, false
	case slices.Contains(stopSignals, sig):
		s.takeStop(sig)
		s.mu.Unlock()
		return e, false
	}
	calls := slices.Collect(maps.Keys(s.calls))
	s.mu.Unlock()
	for _, c := range calls { // without the lock: a call that is about to begin may have to answer
		e.Shared = c.shares(sig) || e.Shared
	}
	if e.Shared {
		s.mu.Lock()
		s.last[sig] = e.At
		s.mu.Unlock()
	}
	return e, true
}

// beginWait is how long a signal from a terminal waits until it is known whether the workers that
// are about to be started receive it too.
const beginWait = time.Second

// shares tells whether the workers receive a signal that this process, or their task, has received.
func (c *call) shares(sig syscall.Signal) bool {
	t := c.tree
	if !t.JobControl || !t.Signalled.isShared(sig, true) { // then they have their own groups
		return t.Signalled.isShared(sig, false)
	}
	late := time.NewTimer(beginWait)
	defer late.Stop()
	select {
	case <-c.begun:
		return t.Signalled.isShared(sig, c.terminal)
	case <-c.runner.lost:
	case <-late.C:
	}
	return t.Signalled.isShared(sig, false)
}

// takeStop handles a signal of job control. Without a Run that wants it, as between two, it has its
// default action.
func (s *Source) takeStop(sig syscall.Signal) {
	wanted := false
	for c := range s.calls {
		if c.tree.JobControl {
			wanted = true
			select {
			case c.stops <- sig:
			default: // it need not receive it twice
			}
		}
	}
	if !wanted {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
}

// add makes the signals of job control arrive at a call until remove. A source catches them until
// it is closed: os/signal.Stop waits in a loop for the goroutine of that package, which may have to
// wait for a core.
func (s *Source) add(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.tree.JobControl && !s.stops && !s.remote {
		s.stops = true
		catch(s.caught, stopSignals)
	}
	s.calls[c] = true
}

func (s *Source) remove(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c)
}

// groupSignal is Result.GroupSignal of a worker that has failed.
func (c *call) groupSignal(startedAt time.Time, result Result) syscall.Signal {
	failed := !startedAt.IsZero() && !result.Stopped && result.ExitCode() != 0
	if !failed || !c.terminal && c.tree.Signalled != Everyone || c.tree.Source == nil {
		return 0
	}
	return c.tree.Source.groupSignal(startedAt, result)
}

// groupSignal is a signal that all processes have received since a worker was started, see
// lastSince; 0 if there was none.
func (s *Source) groupSignal(startedAt time.Time, result Result) syscall.Signal {
	if !s.remote {
		s.awaitMark()
	}
	sig := s.lastSince(startedAt, result.Signal)
	if sig == 0 && slices.Contains(endSignals, result.Signal) {
		time.Sleep(separateWait)
		sig = s.lastSince(startedAt, result.Signal)
	}
	return sig
}

// awaitMark waits until all signals have been taken that this process had received. While the
// kernel signals a group, none of its processes can finish exiting: when a worker has ended because
// of a signal to the group, this process has received it.
func (s *Source) awaitMark() {
	reached := make(chan struct{})
	s.mu.Lock()
	s.marks = append(s.marks, reached)
	s.mu.Unlock()
	_ = syscall.Kill(os.Getpid(), mark)
	select {
	case <-reached:
	case <-s.done:
	case <-time.After(markWait):
	}
}

// separateWait is how long the result of a worker that was killed by a signal waits for that
// signal to its agent or task: each process may have been signalled separately.
const separateWait = 20 * time.Millisecond

// endSignals are the signals that request a program to end.
var endSignals = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// lastSince returns a signal that all processes have received after t: killer, the signal that
// killed a worker, or else the last one of endSignals; 0 if there was none.
func (s *Source) lastSince(t time.Time, killer syscall.Signal) syscall.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last[killer].After(t) {
		return killer
	}
	var last syscall.Signal
	for _, sig := range endSignals {
		if at := s.last[sig]; at.After(t) {
			last, t = sig, at
		}
	}
	return last
}

// underShell reports whether the parent of a process can be a shell with job control, which can
// continue that process: it is in the same session but in another process group.
func underShell(pid int) bool {
	p, err := procfs.Read(procfs.System, pid)
	if err != nil {
		return false
	}
	session, errSession := unix.Getsid(p.Parent)
	own, _ := unix.Getsid(pid)
	group, errGroup := unix.Getpgid(p.Parent)
	ownGroup, _ := unix.Getpgid(pid)
	return errSession == nil && errGroup == nil && session == own && group != ownGroup
}
