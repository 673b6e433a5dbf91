package wrap

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"rdzv/internal/procfs"
	"rdzv/wrap/internal/watchdog"
)

// Event is a signal that this process got.
type Event struct {
	Signal syscall.Signal
	// Shared says that the workers have had the signal too: it was sent to the whole process group (by a terminal, a
	// launcher's daemon, timeout(1), a shell's "kill %1") or to every process of a task (Slurm, systemd), and not to this
	// process alone. To pass it on would deliver it twice.
	Shared bool
	// At is when this process saw it.
	At time.Time
}

// Limits of the pairing of signals with the sentinel's reports.
const (
	// answerWait bounds the wait for the sentinel's answer after a signal: it may be stopped, or have died.
	answerWait = time.Second
	// shareWait is how long after that answer the sentinel may still report the signal, else it was for this process
	// alone. The kernel signals a group in one go, the sentinel before this process; Slurm and systemd go from process
	// to process, and may be interrupted for a while on a busy machine.
	shareWait = 100 * time.Millisecond
	// reportLife is how long a report waits for the signal to this process, whose threads may have to wait for a
	// processor as long as the sentinel. One that is not fetched in that time was sent to the sentinel alone, or stands
	// for two signals that the kernel made one for this process. (Who sends a signal to agent and sentinel one by one, as
	// "pkill -f rdzv" does, is taken to have sent it to the group.)
	reportLife = answerWait
)

// Source yields the signals to this process. Whether they are shared is known while a Run has it as Tree.Source; at
// other times there is no worker to share them with.
type Source struct {
	// C yields every signal asked for. It never closes.
	C <-chan Event

	out     chan Event
	caught  chan os.Signal
	reports chan watchdog.Report // of signal 0: a sentinel has gone
	stop    chan struct{}
	done    chan struct{}

	mu       sync.Mutex
	hearings map[*hearing]bool
	reached  map[syscall.Signal]time.Time // when a signal last reached the whole group
}

// Signals makes this process catch sigs and yield them. Those that were ignored when this process started (SIGHUP under
// nohup, SIGINT in a background job of a script) stay ignored.
//
// A signal that comes again before the process has seen the first is one signal, as ever in Unix. If one is
// sent to the group and the same within 100 ms to this process alone, which is which cannot be told, only how many.
func Signals(sigs ...syscall.Signal) *Source {
	s := &Source{
		out:      make(chan Event),
		caught:   make(chan os.Signal, 64),
		reports:  make(chan watchdog.Report),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
		hearings: map[*hearing]bool{},
		reached:  map[syscall.Signal]time.Time{},
	}
	s.C = s.out
	ignored := ignoredSignals()
	for _, sig := range sigs {
		if !ignored.Has(sig) && !signal.Ignored(sig) {
			signal.Notify(s.caught, sig)
		}
	}
	go s.run()
	return s
}

// ignoredSignals are the signals that this process ignores.
func ignoredSignals() procfs.SignalSet {
	sets, _ := procfs.ReadSignals(procfs.System, os.Getpid()) // without /proc none is known
	return sets.Ignored
}

// Close lets the signals take their default course again. Runs that have the source must have returned.
func (s *Source) Close() {
	signal.Stop(s.caught)
	close(s.stop)
	<-s.done
}

// run pairs signals with reports.
func (s *Source) run() {
	defer close(s.done)
	var p pairing
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	for {
		out, first := s.out, Event{}
		if len(p.ready) == 0 {
			out = nil
		} else {
			first = p.ready[0]
		}
		select {
		case sig := <-s.caught:
			p.signal(sig.(syscall.Signal), time.Now(), s.ask())
		case r := <-s.reports:
			s.take(r, &p)
		case now := <-due.C:
			p.expire(now)
		case out <- first:
			p.ready = p.ready[1:]
		case <-s.stop:
			return
		}
		if at, ok := p.next(); ok {
			due.Reset(time.Until(at))
		}
	}
}

// ask asks the sentinels for their Answer and returns their watchdogs.
func (s *Source) ask() (dogs []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.hearings {
		h.ask()
		dogs = append(dogs, h.watchdog)
	}
	return dogs
}

// take takes in what a sentinel reports.
func (s *Source) take(r watchdog.Report, p *pairing) {
	switch syscall.Signal(r.Signal) {
	case 0:
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.hearings) == 0 {
			p.deserted(time.Now())
		}
	case watchdog.Answer:
		p.answered(int(r.PID), time.Now())
	default:
		p.report(syscall.Signal(r.Signal), time.Now())
	}
}

// hearing is a source's ear for the sentinel of one Run.
type hearing struct {
	barriers chan struct{} // one for every worker's end, see watchdog.Barrier
	done     chan struct{} // closed when there is no more to hear
	ask      func()        // asks for an Answer
	watchdog int           // who sends Answer and Barrier
}

// attach makes s listen to what the sentinel of g reports, until its end. There will be at most n barriers.
func (s *Source) attach(g *guard, n int) *hearing {
	h := &hearing{
		barriers: make(chan struct{}, n),
		done:     make(chan struct{}),
		ask:      g.ask,
		watchdog: g.process.Pid,
	}
	s.mu.Lock()
	s.hearings[h] = true
	s.mu.Unlock()
	go func() {
		defer close(h.done)
		s.listen(g.reports, h)
	}()
	return h
}

// listen takes in what the sentinel of h writes to from.
func (s *Source) listen(from io.Reader, h *hearing) {
	b := make([]byte, watchdog.ReportSize)
	for {
		if _, err := io.ReadFull(from, b); err != nil {
			break
		}
		r := watchdog.ParseReport(b)
		sig, own := syscall.Signal(r.Signal), int(r.PID) == h.watchdog
		switch {
		case sig == watchdog.Barrier && own:
			select {
			case h.barriers <- struct{}{}:
			default: // one more than workers
			}
			continue
		case sig == watchdog.Answer && !own:
			continue // somebody else's
		}
		s.mu.Lock()
		s.reached[sig] = time.Now()
		s.mu.Unlock()
		s.pass(r)
	}
	s.mu.Lock()
	delete(s.hearings, h)
	s.mu.Unlock()
	s.pass(watchdog.Report{})
}

func (s *Source) pass(r watchdog.Report) {
	select {
	case s.reports <- r:
	case <-s.done:
	}
}

// endings are the signals that ask a program to end.
var endings = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// reachedSince returns the last signal that asked the whole group to end after t, or died if that reached it; else 0.
func (s *Source) reachedSince(t time.Time, died syscall.Signal) syscall.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reached[died].After(t) {
		return died
	}
	var last syscall.Signal
	for _, sig := range endings {
		if at := s.reached[sig]; at.After(t) {
			last, t = sig, at
		}
	}
	return last
}
