package rdzv

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Summary is what an agent knows of the job when it leaves.
type Summary struct {
	// Verdict is how the job ended; nil if the store was lost before there was one.
	Verdict *Verdict
	// Code is, for a job that was ended by a signal, its exit code by what its
	// workers made of the signal.
	Code int
	// Settled is true when every agent's outcome is in, or known to be missing.
	Settled bool
	// Unsettled names the agents that had not settled when the time was up, for
	// people.
	Unsettled string
	// Failures are the workers that failed before they were told to stop, in the
	// order of the store, without the one that the verdict is about. Only who
	// reports has them: the agent that the verdict is about, or the store's host
	// for an agent that was lost.
	Failures []Failure
}

// Failure is a worker that failed, and where.
type Failure struct {
	Host string
	Worker
}

// leaveMargin is how much longer than the settle timeout an agent waits for the
// leader's word, which is bound by the same timeout.
const leaveMargin = 2 * time.Second

// Leave waits for the job's end, then until all agents have settled, at most a
// little longer than the settle timeout, then says goodbye to the store. It must
// be called, after Settle, also when World failed; a second call returns what the
// first one did. No agent leaves sooner, so that the store outlives those who need
// it and all know the same end. ctx makes it leave at once: the others take this
// agent for lost unless it has settled.
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
	case <-s.haveSettled: // it may have come together with the store's end
		return nil
	default:
		return err
	}
}

// summarize gathers what this agent knows of the job. err is why it is not all.
func (s *Session) summarize(ctx context.Context, err error) (Summary, error) {
	sum := Summary{Verdict: s.Verdict()}
	if err != nil {
		return sum, err
	}
	sum.Code, sum.Unsettled = s.settled.Code, s.settled.Unsettled
	sum.Settled = sum.Unsettled == ""
	sum.Failures, err = s.failures(ctx, sum.Verdict)
	return sum, err
}

// failures reads all outcomes, which costs their number, on the one agent that
// reports the job's failure.
func (s *Session) failures(ctx context.Context, v *Verdict) ([]Failure, error) {
	if !s.reports(v) {
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

// reports tells whether this agent is the one that reports the job's failure.
func (s *Session) reports(v *Verdict) bool {
	switch {
	case v == nil:
		return false
	case v.Kind == Failed:
		return v.By == s.config.Self.ID
	default:
		return v.Kind == Lost && s.config.Self.Hosting
	}
}

// outcomesOf reads all outcomes in the order in which they came, but for those
// that cannot be understood: the leader has told of them.
func outcomesOf(ctx context.Context, client *clientv3.Client, k keys) ([]Outcome, error) {
	answer, err := again(ctx, func() (*clientv3.GetResponse, error) {
		return client.Get(ctx, k.outcomes(), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
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
