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

// Event is a signal that this process received.
type Event struct {
	Signal syscall.Signal
	// Shared says that the workers have received the signal too: it was sent to the whole process
	// group (by a terminal, a launcher's daemon, timeout(1), a shell's "kill %1") or to every
	// process of a task (Slurm, systemd), not to this process alone. To forward it would deliver it
	// twice.
	Shared bool
	// At is when this process received it.
	At time.Time
}

const (
	// replyWait bounds the wait for the sentinel's reply after a signal: the sentinel may be
	// stopped or dead.
	replyWait = time.Second
	// shareWait is how long after that reply the sentinel may still report the signal; then the
	// signal was for this process alone. The kernel signals all processes of a group in one go, the
	// sentinel before this process. Slurm and systemd signal one process after the other, and may
	// be interrupted for a while on a busy machine.
	shareWait = 100 * time.Millisecond
	// reportLife is how long a report waits for the signal to this process, whose threads may have
	// to wait for a processor as long as the sentinel. Without one the signal was sent to the
	// sentinel alone, or the kernel has merged two signals to this process. (A signal that is sent
	// to agent and sentinel separately, as by "pkill -f rdzv", counts as sent to the group.)
	reportLife = replyWait
)

// Source receives the signals to this process. Whether they are shared is known during a Run with
// this Tree.Source; at other times there are no workers.
type Source struct {
	// C receives every requested signal. It is never closed.
	C <-chan Event

	out     chan Event
	caught  chan os.Signal
	reports chan watchdog.Report // signal 0: a sentinel has ended
	stop    chan struct{}
	done    chan struct{}

	mu            sync.Mutex
	subscriptions map[*subscription]bool
	received      map[syscall.Signal]time.Time // when the whole group last received a signal
}

// Signals makes this process catch sigs and returns the source of them. Signals that were ignored
// when this process started (SIGHUP under nohup, SIGINT in a background job of a script) stay
// ignored.
//
// As always in Unix, a signal that is sent again before the process has received the first one is
// received once. If a signal is sent to the group and within 100 ms again to this process alone,
// one of the two is reported as shared, not necessarily the right one.
func Signals(sigs ...syscall.Signal) *Source {
	s := &Source{
		out:           make(chan Event),
		caught:        make(chan os.Signal, 64),
		reports:       make(chan watchdog.Report),
		stop:          make(chan struct{}),
		done:          make(chan struct{}),
		subscriptions: map[*subscription]bool{},
		received:      map[syscall.Signal]time.Time{},
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

// ignoredSignals are the signals that this process ignores; empty without /proc.
func ignoredSignals() procfs.SignalSet {
	sets, _ := procfs.ReadSignals(procfs.System, os.Getpid())
	return sets.Ignored
}

// Close restores the default actions of the signals. Runs with this source must have returned.
func (s *Source) Close() {
	signal.Stop(s.caught)
	close(s.stop)
	<-s.done
}

// run matches signals with reports.
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
			p.signal(sig.(syscall.Signal), time.Now(), s.query())
		case r := <-s.reports:
			s.handle(r, &p)
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

// query queries all sentinels and returns the pids of their watchdogs.
func (s *Source) query() (watchdogs []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.subscriptions {
		sub.query()
		watchdogs = append(watchdogs, sub.watchdog)
	}
	return watchdogs
}

// handle adds the report of a sentinel to the pairing.
func (s *Source) handle(r watchdog.Report, p *pairing) {
	switch syscall.Signal(r.Signal) {
	case 0:
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.subscriptions) == 0 {
			p.noSentinel(time.Now())
		}
	case watchdog.QueryReply:
		p.replied(int(r.PID), time.Now())
	default:
		p.report(syscall.Signal(r.Signal), time.Now())
	}
}

// subscription connects a source to the sentinel of one Run.
type subscription struct {
	barriers chan struct{} // one for each watchdog.Barrier
	done     chan struct{} // closed when the reports have ended
	query    func()        // requests a watchdog.QueryReply
	watchdog int           // the pid that sends QueryReply and Barrier
}

// subscribe makes s receive the reports of the sentinel of g until they end. At most n of them are
// barriers.
func (s *Source) subscribe(g *guard, n int) *subscription {
	sub := &subscription{
		barriers: make(chan struct{}, n),
		done:     make(chan struct{}),
		query:    g.query,
		watchdog: g.process.Pid,
	}
	s.mu.Lock()
	s.subscriptions[sub] = true
	s.mu.Unlock()
	go func() {
		defer close(sub.done)
		s.receive(g.reports, sub)
	}()
	return sub
}

// receive reads the reports of one sentinel.
func (s *Source) receive(from io.Reader, sub *subscription) {
	b := make([]byte, watchdog.ReportSize)
	for {
		if _, err := io.ReadFull(from, b); err != nil {
			break
		}
		r := watchdog.ParseReport(b)
		sig, own := syscall.Signal(r.Signal), int(r.PID) == sub.watchdog
		switch {
		case sig == watchdog.Barrier && own:
			select {
			case sub.barriers <- struct{}{}:
			default: // nothing waits for more than n
			}
			continue
		case sig == watchdog.QueryReply && !own:
			continue // that of another watchdog, sent to the whole group
		}
		s.mu.Lock()
		s.received[sig] = time.Now()
		s.mu.Unlock()
		s.send(r)
	}
	s.mu.Lock()
	delete(s.subscriptions, sub)
	s.mu.Unlock()
	s.send(watchdog.Report{})
}

// send sends a report to run, unless the source has been closed.
func (s *Source) send(r watchdog.Report) {
	select {
	case s.reports <- r:
	case <-s.done:
	}
}

// endSignals are the signals that request a program to end.
var endSignals = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// receivedSince returns a signal that the whole group received after t: killer, the signal that
// killed a worker, or else the last one of endSignals; 0 if there was none.
func (s *Source) receivedSince(t time.Time, killer syscall.Signal) syscall.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.received[killer].After(t) {
		return killer
	}
	var last syscall.Signal
	for _, sig := range endSignals {
		if at := s.received[sig]; at.After(t) {
			last, t = sig, at
		}
	}
	return last
}
