package rdzv

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// leaveMargin is how much longer than the leader an agent waits until all have settled.
const leaveMargin = 2 * time.Second

// Leave waits until the job has ended and all agents have settled, at most a little longer than the
// settle timeout, and then deregisters from the store. No agent leaves earlier, so that all agents
// know how the job ended and the store exists as long as one of them needs it. Leave must be called
// after Settle, even if World failed; a second call returns the same as the first. When ctx ends it
// leaves at once; unless this agent has settled, the others regard it as lost.
//
// If the agents form another attempt (Summary.Restart) the agent leaves this one alone: it stays
// registered, and must call Next, unless it has withdrawn (Summary.Withdrawn).
func (s *Session) Leave(ctx context.Context) (Summary, error) {
	s.leaveOnce.Do(func() {
		err := s.waitSettled(ctx)
		s.summary.Verdict = s.Verdict()
		if err == nil {
			all := s.settled.Load()
			s.summary.Code, s.summary.Unsettled = all.Code, all.Unsettled
			s.summary.Unreported, s.summary.Successes = all.Unreported, all.Successes
			s.summary.Settled = all.Unsettled == ""
			s.summary.Restart, s.summary.NoRestart = all.Restart, all.NoRestart
		}
		v := s.summary.Verdict
		s.summary.Withdrawn = s.summary.Restart != nil && v.Withdrawn && v.By == s.config.Self.ID
		if s.summary.Withdrawn {
			s.summary.Code = 128 + v.Signal
		} else if s.summary.Restart != nil {
			s.closeAttempt(errLeft)
			return
		}
		if err == nil {
			s.summary.Failures, err = s.failures(ctx, s.summary.Verdict)
		}
		s.leaveErr = err
		s.close(errLeft, err == nil || err == ErrWithdrawn)
	})
	return s.summary, s.leaveErr
}

// settleLimit is how long after the verdict all have settled. In a store that no agent hosts the
// leader may be lost meanwhile.
func (s *Session) settleLimit() time.Duration {
	return s.config.SettleTimeout + leaveMargin + s.registration.ttl
}

func (s *Session) waitSettled(ctx context.Context) error {
	select {
	case <-s.ctx.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch {
	case s.withdrawn.Load():
		return ErrWithdrawn
	case context.Cause(s.ctx) == ErrFull:
		return ErrFull // the job goes on without this agent
	}
	limit := s.settleLimit()
	var err error
	select {
	case <-s.haveSettled:
	case <-s.store.Done():
		err = context.Cause(s.store)
	case <-time.After(limit):
		err = fmt.Errorf("timed out after %v waiting for the other agents to settle", limit)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if s.settled.Load() != nil { // both may happen at once
		return nil
	}
	return err
}

// failures returns the other failures on the agent that reports the job's failure. Only this one
// agent reads all outcomes, in the order in which they were written.
func (s *Session) failures(ctx context.Context, v *Verdict) ([]Failure, error) {
	reports := v != nil && (v.Kind == Failed && v.By == s.config.Self.ID ||
		v.Kind == Lost && s.Leads())
	if !reports {
		return nil, nil
	}
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	answer, err := again(ctx, func() (*clientv3.GetResponse, error) {
		return s.client.Get(ctx, s.keys.outcomes(), clientv3.WithPrefix(),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the outcomes: %w", err)
	}
	var failed []Failure
	for _, kv := range answer.Kvs {
		o, err := decode[Outcome](kv.Value)
		if err != nil {
			continue // it ended the job, see Leader.readOutcome
		}
		for _, w := range o.Workers {
			if w.FailedAlone() && w.Rank != v.Rank {
				failed = append(failed, Failure{o.Host, w})
			}
		}
	}
	return failed, nil
}
