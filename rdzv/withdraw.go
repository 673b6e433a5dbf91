package rdzv

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/record"
)

// ErrWithdrawn is the cause of the end of [Session.Context], and returned by [Session.Leave], if
// this agent has left the job, which goes on, when it ran no workers, see [Session.Withdraw].
var ErrWithdrawn = errors.New("this agent has left the job, which goes on without it")

// withdrawnSeat is that of an agent that has withdrawn before it got one.
var withdrawnSeat = spareSeat

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
	v := s.verdictOf(Ended)
	v.Signal, v.Shared, v.Caller = int(syscall.SIGTERM), shared, s.caller.Load()
	switch seat := s.seat.Load(); {
	case s.config.Self.Hosting && s.survivesLoss():
		v.Text = "this agent hosts the store"
	case s.config.Self.Hosting:
	case seat != nil && seat.Spare,
		s.survivesLoss() && s.seat.CompareAndSwap(nil, &withdrawnSeat):
		return s.withdrawIdle(ctx)
	default:
		v.Withdrawn = s.survivesLoss()
	}
	return s.end(ctx, v)
}

// survivesLoss tells whether the job may go on without one of its agents, as far as this one knows.
// The leader decides.
func (s *Session) survivesLoss() bool {
	w := s.world.Load()
	if w == nil { // between two attempts
		return s.config.Attempt > 0
	}
	return w.Attempt < w.MaxRestarts && (len(w.Spares) > 0 || w.MaxAgents > 0 || w.Replaceable)
}

// withdrawIdle withdraws an agent that runs no workers. It stays until the leader, which may be
// lost at this moment, has decided: that the job goes on without it, or by a verdict.
func (s *Session) withdrawIdle(ctx context.Context) error {
	o := record.NewOutcome(s.config.Self.Host, nil)
	o.Withdrawn = true
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	// Unless there is a verdict: if this is executed twice it must not replace the outcome that
	// follows.
	noVerdict := []clientv3.Cmp{absent(s.keys.verdict())}
	put := clientv3.OpPut(s.keys.outcome(s.config.Self.ID), encode(o),
		clientv3.WithLease(s.registration.jobLease))
	if _, err := commit(ctx, s.client, noVerdict, []clientv3.Op{put}, nil); err != nil {
		return s.refused(ctx, fmt.Errorf("cannot write that this agent is to leave: %w", err))
	}
	return nil
}

// left handles that the leader has let this agent leave the job.
func (s *Session) left() {
	s.withdrawn.Store(true)
	s.cancel(ErrWithdrawn)
}

// end writes a verdict after a signal. If another agent has withdrawn first, the outcome of this
// one tells the leader that the signal was for all.
func (s *Session) end(ctx context.Context, v Verdict) error {
	s.ending.Store(true)
	return s.endWith(ctx, v)
}

// OtherWithdrew returns when this agent learned that the attempt has ended because another agent
// withdraws; zero if it has not.
func (s *Session) OtherWithdrew() (at time.Time) {
	if v := s.Verdict(); v != nil && v.Withdrawn && v.By != s.config.Self.ID {
		at = *s.verdictAt.Load()
	}
	return at
}
