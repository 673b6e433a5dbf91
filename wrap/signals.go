package wrap

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"rdzv/internal/procfs"
)

// Event is a signal that this process received.
type Event struct {
	Signal syscall.Signal
	// Shared says that the workers have received the signal too, see Signalled: in the foreground of
	// a terminal SIGINT, SIGQUIT, SIGHUP, SIGCONT and SIGWINCH are taken for shared, with Everyone
	// those that the holder has received too. To forward it would deliver it twice.
	Shared bool
	// At is when this process received it.
	At time.Time
}

// fromTerminal are the signals that a terminal, or a shell that controls jobs, sends to a whole
// process group.
var fromTerminal = []syscall.Signal{
	syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGCONT, syscall.SIGWINCH,
}

// Source receives the signals to this process. Whether they are shared is known during a Run with
// this Tree.Source; at other times there are no workers.
type Source struct {
	// C receives every requested signal. It is never closed.
	C <-chan Event

	out     chan Event
	caught  chan os.Signal
	reports chan syscall.Signal
	stop    chan struct{}
	done    chan struct{}

	mu    sync.Mutex
	runs  map[*run]bool
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
	s := &Source{
		out:     make(chan Event),
		caught:  make(chan os.Signal, maxSignals),
		reports: make(chan syscall.Signal),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
		runs:    map[*run]bool{},
		last:    map[syscall.Signal]time.Time{},
	}
	s.C = s.out
	catch(s.caught, sigs)
	signal.Notify(s.caught, mark, syscall.SIGCHLD)
	go s.run()
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

// run passes signals on as soon as it is known whether they are shared.
func (s *Source) run() {
	defer close(s.done)
	var p pairing
	var due <-chan time.Time
	for {
		out, first := s.out, Event{}
		if len(p.ready) == 0 {
			out = nil
		} else {
			first = p.ready[0]
		}
		select {
		case sig := <-s.caught:
			s.take(sig.(syscall.Signal), &p)
		case sig := <-s.reports:
			p.report(sig, time.Now())
		case now := <-due:
			p.expire(now)
		case out <- first:
			p.ready = p.ready[1:]
		case <-s.stop:
			return
		}
		if at, ok := p.next(); ok {
			due = time.After(time.Until(at))
		}
	}
}

// take handles a signal to this process.
func (s *Source) take(sig syscall.Signal, p *pairing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch sig {
	case mark:
		for _, reached := range s.marks {
			close(reached)
		}
		s.marks = nil
		return
	case syscall.SIGCHLD:
		for r := range s.runs {
			tell(r.childChanged, sig)
		}
		return
	case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		s.takeStop(sig)
		return
	}
	terminal, everyone := false, false
	for r := range s.runs {
		terminal = terminal || r.terminal
		everyone = everyone || r.tree.Signalled == Everyone
	}
	switch {
	case everyone:
		p.signal(sig, now)
	case terminal && slices.Contains(fromTerminal, sig):
		s.last[sig] = now
		p.ready = append(p.ready, Event{Signal: sig, Shared: true, At: now})
	default:
		p.ready = append(p.ready, Event{Signal: sig, At: now})
	}
}

// takeStop handles a signal of job control. Without a run that wants it, as between two runs, it
// has its default action.
func (s *Source) takeStop(sig syscall.Signal) {
	wanted := false
	for r := range s.runs {
		if r.tree.JobControl {
			wanted = true
			tell(r.stops, sig)
		}
	}
	if !wanted {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
}

// tell sends a signal to a run that need not receive it twice.
func tell(c chan<- os.Signal, sig syscall.Signal) {
	select {
	case c <- sig:
	default:
	}
}

// listen makes SIGCHLD, and the signals of job control, arrive at a run until stop. Without a
// source, nil, they are caught for this run alone. A source catches them until it is closed:
// os/signal.Stop waits in a loop for the goroutine of that package, which may have to wait for a
// core.
func (s *Source) listen(r *run) (stop func()) {
	if s != nil {
		s.add(r)
		return func() { s.remove(r) }
	}
	signal.Notify(r.childChanged, syscall.SIGCHLD)
	if r.tree.JobControl {
		catch(r.stops, stopSignals)
	}
	return func() {
		signal.Stop(r.childChanged)
		signal.Stop(r.stops)
	}
}

func (s *Source) add(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.tree.JobControl && !s.stops {
		s.stops = true
		catch(s.caught, stopSignals)
	}
	s.runs[r] = true
}

func (s *Source) remove(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, r)
}

// received is called when a holder has received a signal.
func (s *Source) received(sig syscall.Signal) {
	s.mu.Lock()
	everyone := false
	for r := range s.runs {
		everyone = everyone || r.tree.Signalled == Everyone
	}
	if everyone {
		s.last[sig] = time.Now()
	}
	s.mu.Unlock()
	if !everyone {
		return
	}
	select {
	case s.reports <- sig:
	case <-s.done:
	}
}

// separateWait is how long the result of a worker that was killed by a signal waits for that
// signal to this process: each process may have been signalled separately.
const separateWait = 10 * time.Millisecond

// groupSignal is Result.GroupSignal of a worker started at startedAt, or never if that is zero.
func (s *Source) groupSignal(startedAt time.Time, result Result) syscall.Signal {
	if startedAt.IsZero() || result.Stopped || result.ExitCode() == 0 {
		return 0
	}
	s.awaitMark()
	sig := s.receivedSince(startedAt, result.Signal)
	if sig == 0 && slices.Contains(endSignals, result.Signal) {
		time.Sleep(separateWait)
		sig = s.receivedSince(startedAt, result.Signal)
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

// endSignals are the signals that request a program to end.
var endSignals = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// receivedSince returns a signal that all processes received after t: killer, the signal that
// killed a worker, or else the last one of endSignals; 0 if there was none.
func (s *Source) receivedSince(t time.Time, killer syscall.Signal) syscall.Signal {
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
