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

// stop orders the watchdog to end the tree as the cause of ctx's end says, if ctx has ended. It
// returns a timer of when that must be done.
func (g *guard) stop(ctx context.Context, grace time.Duration) <-chan time.Time {
	s, ok := errors.AsType[*Stop](context.Cause(ctx))
	if !ok {
		s = &Stop{}
	}
	if s.Delivered != 0 {
		at := monotonic(s.At)
		if at == 0 {
			at = watchdog.Monotonic()
		}
		g.order(watchdog.Record{
			Kind: watchdog.AlreadySignalled, A: int64(at), B: int64(s.Delivered),
		})
	}
	order := watchdog.Record{Kind: watchdog.Stop, A: int64(grace)}
	if s.DumpStacks {
		order.B = 1
	}
	g.order(order)
	stages := watchdog.AnnounceWait + watchdog.DumpWait + watchdog.KillWait
	return time.After(grace + stages + lateMargin)
}
