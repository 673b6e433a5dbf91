package wrap

import (
	"context"
	"errors"
	"syscall"
	"time"

	"rdzv/wrap/internal/watchdog"
)

// Stop, as the cause of the end of Run's ctx, says how the tree is to be stopped. Any other cause
// has the effect of the zero Stop.
type Stop struct {
	// Err is the reason; may be nil.
	Err error
	// Delivered is a signal to end that the workers have already received, not from Run; 0 is none.
	// Workers started before the time At receive no SIGTERM then, except those that still run
	// although Delivered would have killed them: they were started after it was sent. A zero At is
	// now.
	Delivered syscall.Signal
	At        time.Time
	// DumpStacks sends SIGABRT instead of SIGTERM to workers that catch it, as Python's
	// faulthandler does: they print their stacks, for which they have Tree.Grace, and die.
	DumpStacks bool
}

// Error is the text of Err, or "stopped".
func (s *Stop) Error() string {
	if s.Err == nil {
		return "stopped"
	}
	return s.Err.Error()
}

// Unwrap returns Err.
func (s *Stop) Unwrap() error { return s.Err }

// stopOf returns the Stop with which ctx has ended.
func stopOf(ctx context.Context) *Stop {
	var stop *Stop
	if errors.As(context.Cause(ctx), &stop) {
		return stop
	}
	return &Stop{}
}

// lateMargin is how much longer than its own limits a watchdog may take before it is killed.
const lateMargin = 2 * time.Second

// stop orders the watchdog to end the tree and returns a timer of when that must be done.
func (r *run) stop(s *Stop) <-chan time.Time {
	if s.Delivered != 0 {
		r.guard.order(watchdog.Record{
			Kind: watchdog.AlreadySignalled, A: int64(monotonic(s.At)), B: int64(s.Delivered),
		})
	}
	order := watchdog.Record{Kind: watchdog.Stop, A: int64(r.tree.Grace)}
	if s.DumpStacks {
		order.B = 1
	}
	r.guard.order(order)
	return time.After(r.tree.Grace + watchdog.DumpWait + watchdog.KillWait + lateMargin)
}

// monotonic converts t to watchdog.Monotonic; a zero t is now.
func monotonic(t time.Time) time.Duration {
	now := watchdog.Monotonic()
	if t.IsZero() {
		return now
	}
	return now - time.Since(t)
}

// kill orders the watchdog to kill the tree and returns a timer of when that must be done.
func (r *run) kill() <-chan time.Time {
	r.guard.order(watchdog.Record{Kind: watchdog.Kill})
	return time.After(watchdog.KillWait + lateMargin)
}
