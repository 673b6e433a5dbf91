package rdzv

import (
	"context"
	"syscall"
	"time"
)

// Withdraw makes this agent leave the job because it has received SIGTERM: its node is about to
// stop. shared is as in End. If others can take its place, or it can be started again, the
// attempt ends, and the next one is without this agent; one without workers leaves as soon as
// the leader knows. If they cannot, it ends the job as End does: before the first world, without
// a spare or another attempt, or if it hosts the store. If the attempt has ended for another
// reason the agent can withdraw from the next one.
func (s *Session) Withdraw(ctx context.Context, shared bool) error {
	if s.Verdict() != nil {
		return nil
	}
	v := s.verdicts.signalled(int(syscall.SIGTERM), shared)
	survives := survivesLoss(s.config.Attempt, s.signals.World.Load())
	switch seat := s.seat.Load(); {
	case s.config.Self.Hosting && survives:
		v.Text = "this agent hosts the store"
	case s.config.Self.Hosting:
	case seat != nil && seat.Spare, survives && s.seat.CompareAndSwap(nil, &withdrawnSeat):
		return s.outcomes.withdraw(ctx)
	default:
		v.Withdrawn = survives
	}
	// If another agent has withdrawn first, the outcome of this one tells the leader that the signal
	// was for all.
	s.ending.Store(true)
	return s.verdicts.put(ctx, v)
}

// OtherWithdrew returns when this agent learned that the attempt has ended because another agent
// withdraws; zero if it has not.
func (s *Session) OtherWithdrew() (at time.Time) {
	if v := s.Verdict(); v != nil && v.Withdrawn && v.By != s.config.Self.ID {
		at = s.signals.VerdictAt()
	}
	return at
}
