package watchdog

import (
	"io"
	"os"
	"syscall"
	"time"

	"rdzv/internal/boottime"
)

// Two threads wait, each in its own system call: one for children, one for the agent's orders. Each
// acts on what it receives, under one lock. To pass it to another thread would cost more than all
// the rest if 64 watchdogs stop their trees at the same time on two cores.

// serveAgent starts the workers and carries out the agent's orders, and Kill when the agent has
// ended. While the tree is being stopped it also searches for orphans at intervals.
func (w *watchdog) serveAgent() {
	b := make([]byte, RecordSize)
	for ended := false; ; {
		w.startNext()
		order, scan := Record{}, true
		if readable(ended, w.untilTimer()) {
			if _, err := io.ReadFull(agent, b); err != nil {
				ended = true
				order.Kind = Kill
				w.keepTrace()
			} else {
				order = ParseRecord(b)
			}
			scan = order.Kind == Kill
		}
		w.step(order, scan)
	}
}

// serveChildren handles changes of children until none is left and none will be started. Then no
// descendant runs, so none can become a child any more.
func (w *watchdog) serveChildren() {
	const changed = syscall.WEXITED | syscall.WSTOPPED | syscall.WCONTINUED
	for {
		more := w.awaitWorker()
		if !waitChild(changed) && !more && !waitChild(syscall.WEXITED|syscall.WALL) { // the sentinel
			return
		}
		w.step(Record{}, false)
	}
}

// awaitWorker waits until a worker runs, unless none will be started. It reports whether some have
// not been started yet.
func (w *watchdog) awaitWorker() (more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue.spec) > 0 && len(w.workers) == 0 {
		w.changed.Wait()
	}
	return len(w.queue.spec) > 0
}

// step carries out the order, unless it is zero, does what the phase then requires, and ends this
// process when it is done. For scan see advance.
func (w *watchdog) step(order Record, scan bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if order.Kind != 0 {
		w.handle(order)
	}
	now := time.Now()
	if scan {
		w.scanned = now
	}
	if !w.dumpAt.IsZero() && !now.Before(w.dumpAt) {
		w.dumpStacks()
	}
	w.checkAgent(now)
	w.checkLease()
	if w.advance(now, scan) {
		w.killFrozenAgent()
		tell(Record{Kind: Finished})
		w.outputs.close()
		w.awaitTrace()
		exit()
	}
}

// exit ends this process. A thread that hangs in a write to a log keeps the process, and what it
// has open, until the write returns. So the descriptors are closed first: the agent then sees the
// end of this process, and a launcher that of the output.
func exit() {
	closeFiles()
	os.Exit(0)
}

// handle carries out one order of the agent.
func (w *watchdog) handle(r Record) {
	w.reap() // what ended before the order did not end because of it
	switch r.Kind {
	case Signal:
		s := syscall.Signal(r.A)
		for _, e := range w.workers {
			if e.startedAt >= time.Duration(r.B) && (r.C == 0 || !e.diesOf(s)) {
				e.send(s)
			}
		}
		if r.C == 0 {
			w.queue.missed |= 1 << (r.A - 1)
		}
	case AlreadySignalled:
		w.markSignalled(time.Duration(r.A), syscall.Signal(r.B))
	case Stop:
		w.stop(time.Duration(r.A), r.B == 1)
	case DumpStacks:
		w.announceDump(true)
	case Announced:
		w.dumpStacks()
	case Kill:
		w.enter(killing, KillWait)
	case Query:
		w.sentinel.mark(QueryReply)
	case Renew:
		w.renew(time.Duration(r.A), time.Duration(r.B))
	case StartNow:
		w.queue.startNow()
	case LimitFreeze:
		w.freeze.limit = time.Duration(r.A)
	}
}

// markSignalled marks the workers that have received s, a signal to end: those started before the
// time at. But at is when the agent received s, which was sent earlier. A worker that still runs
// although s would have killed it was started in between and has not received it.
func (w *watchdog) markSignalled(at time.Duration, s syscall.Signal) {
	for _, e := range w.workers {
		if e.startedAt >= at {
			continue
		}
		e.signalled = e.signalled || !e.diesOf(s)
	}
}

// untilTimer is the time until the next start of a worker or, while the tree is being stopped,
// until the next search for orphans: the kernel reports the end of a child but not that this
// process has adopted one. While SIGABRT is announced it is the time until that, else until the
// next check of the agent or of the lease. It is nil if there is none.
func (w *watchdog) untilTimer() *syscall.Timeval {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait, leased := w.lease.untilCheck()
	switch {
	case w.phase == killing:
		wait = time.Until(w.scanned.Add(2 * time.Millisecond))
	case w.phase != running:
		wait = time.Until(w.scanned.Add(10 * time.Millisecond))
	case !w.dumpAt.IsZero():
		wait = min(wait, time.Until(w.dumpAt))
	case len(w.queue.spec) > 0 && !w.held():
		wait = min(wait, w.queue.untilNext())
	case w.freeze.limit > 0:
		wait = min(wait, w.freeze.untilCheck(time.Now()))
	case !leased:
		w.lease.wakeBy = 0
		return nil
	}
	w.lease.wakeBy = boottime.Now() + wait
	t := syscall.NsecToTimeval(int64(max(0, wait)))
	return &t
}

// readable waits until the agent has sent an order or has ended, and reports whether it has. A
// limit that is not nil bounds the wait. If the agent is known to have ended it only waits.
func readable(ended bool, limit *syscall.Timeval) bool {
	var set syscall.FdSet
	count := 0
	if !ended {
		set.Bits[0], count = 1, 1 // descriptor 0
	}
	n, _ := syscall.Select(count, &set, nil, nil, limit)
	return n > 0
}

// waitChild waits until a child has changed its state, without reaping it, and reports whether
// there is a child. The options are those of waitid(2).
func waitChild(options int) bool {
	const pAll = 0
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pAll, 0, 0,
		uintptr(options|syscall.WNOWAIT), 0, 0)
	return errno == 0 || errno == syscall.EINTR
}
