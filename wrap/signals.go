package wrap

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"rdzv/internal/procfs"
	"rdzv/wrap/internal/watchdog"
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

	mu        sync.Mutex
	sentinels map[int]chan<- struct{}      // by pid of the watchdog: requests a QueryReply
	received  map[syscall.Signal]time.Time // when the whole group last received a signal
}

// maxSignals is how many signals, and queries about them, may wait.
const maxSignals = 64

// Signals makes this process catch sigs and returns the source of them. Signals that were ignored
// when this process started (SIGHUP under nohup, SIGINT in a background job of a script) stay
// ignored.
//
// As always in Unix, a signal that is sent again before the process has received the first one is
// received once. If a signal is sent to the group and within 100 ms again to this process alone,
// one of the two is reported as shared, not necessarily the right one.
func Signals(sigs ...syscall.Signal) *Source {
	s := &Source{
		out:       make(chan Event),
		caught:    make(chan os.Signal, maxSignals),
		reports:   make(chan watchdog.Report),
		stop:      make(chan struct{}),
		done:      make(chan struct{}),
		sentinels: map[int]chan<- struct{}{},
		received:  map[syscall.Signal]time.Time{},
	}
	s.C = s.out
	catch(s.caught, sigs)
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

// run matches signals with reports.
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
			p.signal(sig.(syscall.Signal), time.Now(), s.query())
		case r := <-s.reports:
			s.handle(r, &p)
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

// query queries all sentinels and returns the pids of their watchdogs.
func (s *Source) query() (watchdogs []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for watchdog, queries := range s.sentinels {
		select {
		case queries <- struct{}{}:
		default: // the watchdog does not take orders
		}
		watchdogs = append(watchdogs, watchdog)
	}
	return watchdogs
}

// handle adds the report of a sentinel to the pairing.
func (s *Source) handle(r watchdog.Report, p *pairing) {
	switch sig, now := syscall.Signal(r.Signal), time.Now(); sig {
	case 0:
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.sentinels) == 0 {
			p.expire(now.Add(replyWait)) // there will be no more replies
		}
	case watchdog.QueryReply:
		p.replied(int(r.PID), now)
	default:
		p.report(sig, now)
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
