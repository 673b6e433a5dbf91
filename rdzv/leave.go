package rdzv

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// leaveMargin is how much longer than the leader an agent waits until all have settled.
const leaveMargin = 2 * time.Second

// Leave waits until the job has ended and all agents have settled, at most a little longer
// than the settle timeout, and then deregisters from the store. No agent leaves earlier, so
// that all agents know how the job ended and the store exists as long as one of them needs
// it. Leave must be called after Settle, even if World failed; a second call returns the
// same as the first. When ctx ends it leaves at once; unless this agent has settled, the
// others regard it as lost.
func (s *Session) Leave(ctx context.Context) (Summary, error) {
	s.leaveOnce.Do(func() {
		s.leaveErr = s.waitSettled(ctx)
		s.summary, s.leaveErr = s.summarize(ctx, s.leaveErr)
		s.close(errLeft, s.leaveErr == nil)
	})
	return s.summary, s.leaveErr
}

func (s *Session) waitSettled(ctx context.Context) error {
	select {
	case <-s.ctx.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if context.Cause(s.ctx) == ErrFull {
		return ErrFull // the job goes on without this agent
	}
	limit := s.config.SettleTimeout + leaveMargin
	bound := time.NewTimer(limit)
	defer bound.Stop()
	var err error
	select {
	case <-s.haveSettled:
	case <-s.store.Done():
		err = context.Cause(s.store)
	case <-bound.C:
		err = fmt.Errorf("timed out after %v waiting for the other agents to settle", limit)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	select {
	case <-s.haveSettled: // both may happen at once
		return nil
	default:
		return err
	}
}

// summarize returns what this agent knows about the job. err is not nil if it left early.
func (s *Session) summarize(ctx context.Context, err error) (Summary, error) {
	sum := Summary{Verdict: s.Verdict()}
	if err != nil {
		return sum, err
	}
	sum.Code, sum.Unsettled = s.settled.Load().Code, s.settled.Load().Unsettled
	sum.Settled = sum.Unsettled == ""
	sum.Failures, err = s.failures(ctx, sum.Verdict)
	return sum, err
}

// failures returns the other failures on the agent that reports the job's failure. Only
// this one agent reads all outcomes.
func (s *Session) failures(ctx context.Context, v *Verdict) ([]Failure, error) {
	if !s.reportsFailure(v) {
		return nil, nil
	}
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	outcomes, err := outcomesOf(ctx, s.client, s.keys)
	if err != nil {
		return nil, err
	}
	var failed []Failure
	for _, o := range outcomes {
		for _, w := range o.Workers {
			if w.failedAlone() && w.Rank != v.Rank {
				failed = append(failed, Failure{o.Host, w})
			}
		}
	}
	return failed, nil
}

// reportsFailure reports whether this agent is the one that reports the job's failure.
func (s *Session) reportsFailure(v *Verdict) bool {
	switch {
	case v == nil:
		return false
	case v.Kind == Failed:
		return v.By == s.config.Self.ID
	default:
		return v.Kind == Lost && s.config.Self.Hosting
	}
}

// outcomesOf returns all outcomes in the order in which they were written. It omits those
// that cannot be decoded: they ended the job (see Leader.readOutcome).
func outcomesOf(ctx context.Context, client *clientv3.Client, k keys) ([]Outcome, error) {
	answer, err := again(ctx, func() (*clientv3.GetResponse, error) {
		return client.Get(ctx, k.outcomes(), clientv3.WithPrefix(),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the outcomes: %w", err)
	}
	outcomes := make([]Outcome, 0, len(answer.Kvs))
	for _, kv := range answer.Kvs {
		if o, err := decode[Outcome](kv.Value); err == nil {
			outcomes = append(outcomes, o)
		}
	}
	return outcomes, nil
}
