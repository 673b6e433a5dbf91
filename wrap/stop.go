package wrap

import (
	"context"
	"errors"
	"syscall"
	"time"

	"rdzv/wrap/internal/watchdog"
)

// Stop is a cause with which the ctx of Run may end, to say how its tree is to be stopped. Any other cause is the same
// as a zero Stop.
type Stop struct {
	// Err is why.
	Err error
	// Delivered is a signal to end that the workers have already had, by no doing of Run's; 0 is none. Those that were
	// running at the time At get no SIGTERM, unless they live although they would have died of it: one that was started
	// while it was on its way has not had it. A zero At means now.
	Delivered syscall.Signal
	At        time.Time
	// Stacks gives workers that catch SIGABRT (Python's faulthandler) that signal in place of SIGTERM: they print their
	// stacks, for which they have Tree.Grace, and die of it.
	Stacks bool
}

// Error tells why.
func (s *Stop) Error() string {
	if s.Err == nil {
		return "stopped"
	}
	return s.Err.Error()
}

// Unwrap returns Err.
func (s *Stop) Unwrap() error { return s.Err }

// stopOf is how ctx, which has ended, wants its tree stopped.
func stopOf(ctx context.Context) *Stop {
	var stop *Stop
	if errors.As(context.Cause(ctx), &stop) {
		return stop
	}
	return &Stop{}
}

// overdue is how much longer than it should need a watchdog is given to end a tree.
const overdue = 2 * time.Second

// stop tells the watchdog to end the tree, and returns when that is overdue.
func (r *run) stop(s *Stop) <-chan time.Time {
	if s.Delivered != 0 {
		r.guard.order(watchdog.Record{Kind: watchdog.Spare, A: int64(monotonic(s.At)), B: int64(s.Delivered)})
	}
	order := watchdog.Record{Kind: watchdog.Stop, A: int64(r.tree.Grace)}
	if s.Stacks {
		order.B = 1
	}
	r.guard.order(order)
	return time.After(r.tree.Grace + watchdog.DumpWait + watchdog.KillWait + overdue)
}

// monotonic is t on the clock that this process and the watchdog share; a zero t is now.
func monotonic(t time.Time) time.Duration {
	now := watchdog.Monotonic()
	if t.IsZero() {
		return now
	}
	return now - time.Since(t)
}

// kill tells the watchdog to kill the tree, and returns when that is overdue.
func (r *run) kill() <-chan time.Time {
	r.guard.order(watchdog.Record{Kind: watchdog.Kill})
	return time.After(watchdog.KillWait + overdue)
}
