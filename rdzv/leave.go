package rdzv

import (
	"context"
	"fmt"
	"time"

	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/internal/registration"
	"rdzv/rdzv/internal/signals"
)

// Leave waits until the job has ended and all agents have settled, at most a little longer than the
// settle timeout, and then deregisters from the store. No agent leaves earlier, so that all agents
// know how the job ended and the store exists as long as one of them needs it. Leave must be called
// after Settle, even if World failed; a second call returns the same as the first. When ctx ends it
// leaves at once; unless this agent has settled, the others regard it as lost.
//
// If the agents form another attempt (Summary.Restart) the agent leaves this one alone: it stays
// registered, and must call Next, unless it has withdrawn (Summary.Withdrawn).
func (s *Session) Leave(ctx context.Context) (Summary, error) {
	l := &s.leave
	l.once.Do(func() {
		err := awaitSettled(ctx, s.life, s.signals, s.config.settleLimit(s.registration.TTL()))
		all := s.signals.Settled.Load()
		l.summary = summarize(s.Verdict(), all, err, s.config.Self.ID)
		if l.summary.Restart != nil && !l.summary.Withdrawn {
			s.life.end(errLeft, s.signals)
			return
		}
		switch v := l.summary.Verdict; {
		case err != nil:
		case s.reports(v):
			l.summary.Failures, l.summary.Details, err = s.outcomes.read(ctx, v)
		case s.config.ReadFailure && v != nil && v.Kind == Failed:
			l.summary.Details, err = s.outcomes.failed(ctx, v)
		}
		l.err = err
		parting := registration.Nothing
		switch {
		case err != nil && err != ErrWithdrawn:
		case all != nil && all.Restart == nil:
			parting = registration.Over
		default:
			parting = registration.Goodbye
		}
		s.close(errLeft, parting)
	})
	return l.summary, l.err
}

// summarize returns the summary of an agent, without the failures. err is why it does not know how
// all have settled.
func summarize(v *Verdict, all *record.Settled, err error, self string) Summary {
	sum := Summary{Verdict: v}
	if err == nil {
		sum.Code, sum.Unsettled, sum.Settled = all.Code, all.Unsettled, all.Unsettled == ""
		sum.Unreported, sum.Successes = all.Unreported, all.Successes
		sum.Disconnected = all.Disconnected
		sum.Restart, sum.NoRestart = all.Restart, all.NoRestart
	}
	if sum.Withdrawn = sum.Restart != nil && v.Withdrawn && v.By == self; sum.Withdrawn {
		sum.Code = 128 + int(v.Signal)
	}
	return sum
}

// reports tells whether this agent reports how the job ended: only such agents read all outcomes.
func (s *Session) reports(v *Verdict) bool {
	seat := s.seat.Load()
	switch {
	case v == nil:
		return false
	case v.Kind == Failed && v.By == s.config.Self.ID, v.Kind == Lost && s.Leads():
		return true
	}
	return s.config.ReadDetails && seat != nil && (s.Leads() || seat.Has(0))
}

// awaitSettled waits until the attempt has ended, and then at most for the limit until all agents
// have settled.
func awaitSettled(
	ctx context.Context, l *life, s *signals.Signals, limit time.Duration,
) error {
	select {
	case <-l.ctx.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch {
	case l.withdrawn.Load():
		return ErrWithdrawn
	case context.Cause(l.ctx) == ErrFull:
		return ErrFull // the job goes on without this agent
	}
	var err error
	select {
	case <-s.Settled.Done():
	case <-l.store.Context().Done():
		err = context.Cause(l.store.Context())
	case <-time.After(limit):
		err = fmt.Errorf("timed out after %v waiting for the other agents to settle", limit)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if s.Settled.Load() != nil { // both may happen at once
		return nil
	}
	return err
}
