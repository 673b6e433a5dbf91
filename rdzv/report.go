package rdzv

import (
	"context"
	"fmt"
	"slices"
)

// Fail reports that a worker of this agent failed. If there is no verdict yet, this
// failure is the verdict. It returns when the store has answered.
func (s *Session) Fail(ctx context.Context, w Worker) error {
	return s.writeVerdict(ctx, failedVerdict(s.config.Self.ID, s.config.Self.Host, w))
}

// End reports that this agent received a signal that ends the job. shared says that its workers
// have received it too.
func (s *Session) End(ctx context.Context, signal int, shared bool) error {
	v := s.verdictOf(Ended)
	v.Signal, v.Shared = signal, shared
	return s.writeVerdict(ctx, v)
}

// ReportLoss reports the loss of something without which this agent's workers must not
// run, such as the launcher. text is a sentence.
func (s *Session) ReportLoss(ctx context.Context, text string) error {
	v := s.verdictOf(Lost)
	v.Text = text
	return s.writeVerdict(ctx, v)
}

// Move tells all agents of this store to look for another one. It reports whether they
// will: a job whose world is agreed, or that has ended, does not move.
func (s *Session) Move(ctx context.Context) (moved bool, err error) {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	return writeVerdict(ctx, s.client, s.keys, s.verdictOf(Moved), s.keys.world())
}

// verdictOf returns a verdict about this agent.
func (s *Session) verdictOf(kind Kind) Verdict {
	v := verdictOf(kind)
	v.By, v.Host, v.PID = s.config.Self.ID, s.config.Self.Host, s.config.Self.PID
	return v
}

func (s *Session) writeVerdict(ctx context.Context, v Verdict) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	_, err := writeVerdict(ctx, s.client, s.keys, v)
	return err
}

// Settle publishes how all workers of this agent ended. An agent that has started none passes none.
// If there is no verdict yet, a worker that failed or is missing ends the job. links are what it has
// measured, in a job that checks its nodes.
func (s *Session) Settle(ctx context.Context, workers []Worker, links ...Link) error {
	o := newOutcome(s.config.Self.Host, workers)
	o.Links = slices.Clone(links)
	for i := range o.Links {
		l := &o.Links[i]
		l.Addr, l.Error = clipFact(l.Addr), clipFact(l.Error)
	}
	return s.putOutcome(ctx, s.keys.outcome(s.config.Self.ID), o)
}

// Progress publishes which workers of this agent have ended while others still run. The
// leader needs it to find stragglers among the workers of one agent.
func (s *Session) Progress(ctx context.Context, ended []Worker) error {
	o := newOutcome(s.config.Self.Host, ended)
	return s.putOutcome(ctx, s.keys.progress(s.config.Self.ID), o)
}

// Reached publishes that all workers of this agent have reached init_process_group except some. The
// agent of rank 0 calls it when rank 0 has reached it, and then another one when the leader asks
// (see Look), unless it has nothing to except; both call it again when fewer are missing.
func (s *Session) Reached(ctx context.Context, except []Unreached) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	key := s.keys.reached(s.config.Self.ID)
	if err := put(ctx, s.client, key, encode(reached{except})); err != nil {
		return fmt.Errorf("cannot write which workers have reached init_process_group: %w", err)
	}
	return nil
}

func (s *Session) putOutcome(ctx context.Context, key string, o Outcome) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	if err := put(ctx, s.client, key, encode(o)); err != nil {
		return fmt.Errorf("cannot write the outcome: %w", err)
	}
	return nil
}
