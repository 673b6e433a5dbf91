package wrap

import (
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"rdzv/wrap/internal/watchdog"
)

// subscription connects a source to the sentinel of one Run. All methods but receive can be called
// on a nil subscription, that of a Run without a source.
type subscription struct {
	source   *Source
	reports  *os.File      // of the sentinel
	watchdog int           // the pid that sends QueryReply and Barrier
	barriers chan struct{} // one for each watchdog.Barrier
	done     chan struct{} // closed when the reports have ended
	silent   bool          // the last Barrier was not reported in time
}

// subscribe makes s receive the reports of the sentinel of g until they end, and send to queries
// what the sentinel is to be queried for. At most n of the reports are barriers.
func (s *Source) subscribe(g *guard, queries chan<- struct{}, n int) *subscription {
	sub := &subscription{
		source:   s,
		reports:  g.reports,
		watchdog: g.process.Pid,
		barriers: make(chan struct{}, n),
		done:     make(chan struct{}),
	}
	s.mu.Lock()
	s.sentinels[sub.watchdog] = queries
	s.mu.Unlock()
	go sub.receive()
	return sub
}

// receive passes the reports to the source.
func (sub *subscription) receive() {
	defer close(sub.done)
	s, b := sub.source, make([]byte, watchdog.ReportSize)
	for {
		if _, err := io.ReadFull(sub.reports, b); err != nil {
			break
		}
		r := watchdog.ParseReport(b)
		sig, own := syscall.Signal(r.Signal), int(r.PID) == sub.watchdog
		switch {
		case sig == watchdog.Barrier && own:
			sub.barriers <- struct{}{}
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
	delete(s.sentinels, sub.watchdog)
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

// end is called when the watchdog has ended. It has ended the sentinel, or that dies with it.
func (sub *subscription) end() {
	if sub == nil {
		return
	}
	// A sentinel that is still alive is killed later, by killLeft.
	_ = sub.reports.SetReadDeadline(time.Now().Add(barrierWait))
	<-sub.done
	sub.reports.Close()
}

const (
	// barrierWait is how long to wait for a Barrier: the sentinel may be stopped, with its group.
	barrierWait = time.Second
	// silentBarrierWait replaces barrierWait if the Barrier before was not reported in time.
	silentBarrierWait = 20 * time.Millisecond
	// separateWait is how long the result of a worker that was killed by a signal waits for a
	// report after the Barrier: each process may have been signalled separately.
	separateWait = 10 * time.Millisecond
)

// groupSignal is Result.GroupSignal of a worker started at startedAt, or never if that is zero. It
// must be called once for each end of a worker.
func (sub *subscription) groupSignal(startedAt time.Time, result Result) syscall.Signal {
	if sub == nil || startedAt.IsZero() || result.Stopped {
		return 0
	}
	limit := barrierWait
	if sub.silent { // many workers may end at the same time
		limit = silentBarrierWait
	}
	sub.silent = !sub.await(sub.barriers, limit)
	sig := sub.source.receivedSince(startedAt, result.Signal)
	if sig == 0 && slices.Contains(endSignals, result.Signal) {
		sub.await(nil, separateWait)
		sig = sub.source.receivedSince(startedAt, result.Signal)
	}
	return sig
}

// await waits for c or the end of the reports, at most d. It reports false after d.
func (sub *subscription) await(c <-chan struct{}, d time.Duration) bool {
	select {
	case <-c:
	case <-sub.done:
	case <-time.After(d):
		return false
	}
	return true
}
