package rdzv

import (
	"context"
	"fmt"
)

// Fail says that a worker of this agent failed. If nobody said anything before,
// this is how the job ends, for all. It returns when the store has it.
func (s *Session) Fail(ctx context.Context, w Worker) error {
	return s.writeVerdict(ctx, failedVerdict(s.config.Self.ID, s.config.Self.Host, w))
}

// End says that this agent was told by a signal to end the job.
func (s *Session) End(ctx context.Context, signal int) error {
	v := s.verdictOf(Ended)
	v.Signal = signal
	return s.writeVerdict(ctx, v)
}

// ReportLoss says that something without which this agent's workers must not run is
// gone, such as the launcher that started them.
func (s *Session) ReportLoss(ctx context.Context, what string) error {
	v := s.verdictOf(Lost)
	v.Text = what
	return s.writeVerdict(ctx, v)
}

// Move makes all agents of this store go to another one. It reports whether they go:
// a job whose world is agreed, or that has ended, does not move.
func (s *Session) Move(ctx context.Context) (moved bool, err error) {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	return writeVerdict(ctx, s.client, s.keys, s.verdictOf(Moved), s.keys.world())
}

// verdictOf is a verdict on this agent.
func (s *Session) verdictOf(kind Kind) Verdict {
	v := verdictOf(kind)
	v.By, v.Host, v.PID = s.config.Self.ID, s.config.Self.Host, s.config.Self.PID
	return v
}

// writeVerdict writes the verdict unless there is one.
func (s *Session) writeVerdict(ctx context.Context, v Verdict) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	_, err := writeVerdict(ctx, s.client, s.keys, v)
	return err
}

// Settle says how all workers of this agent have ended; an agent that started
// none gives none. A worker that failed before anybody said so ends the job, as
// do workers that are missing.
func (s *Session) Settle(ctx context.Context, workers []Worker) error {
	return s.putWorkers(ctx, s.keys.outcome(s.config.Self.ID), workers)
}

// Progress says which workers of this agent have ended while others of it still
// run. An agent that keeps this to itself is not seen to have stragglers.
func (s *Session) Progress(ctx context.Context, ended []Worker) error {
	return s.putWorkers(ctx, s.keys.progress(s.config.Self.ID), ended)
}

func (s *Session) putWorkers(ctx context.Context, key string, workers []Worker) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	if err := put(ctx, s.client, key, encode(newOutcome(s.config.Self.Host, workers))); err != nil {
		return fmt.Errorf("cannot write the outcome: %w", err)
	}
	return nil
}
