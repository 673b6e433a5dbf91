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
	// Failures are the workers that failed before they were told to stop, in the
	// order of the store; only the agent that the verdict is about has them.
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

// Leave waits until all agents have settled, at most a little longer than the
// settle timeout, then says goodbye to the store. It must be called once, after
// Settle, also when World failed. No agent leaves sooner, so that the store
// outlives those who need it and all know the same end.
func (s *Session) Leave(ctx context.Context) (Summary, error) {
	err := s.waitGone(ctx)
	sum := Summary{Verdict: s.Verdict()}
	if err == nil {
		sum.Settled = s.settlement.Unsettled == 0
		sum.Code = s.settlement.Code
		sum.Failures, err = s.failures(ctx, sum.Verdict)
	}
	s.close(ErrLeft)
	return sum, err
}

func (s *Session) waitGone(ctx context.Context) error {
	bound := time.NewTimer(s.config.SettleTimeout + leaveMargin)
	defer bound.Stop()
	select {
	case <-s.gone:
		return nil
	case <-s.lost:
		return ErrStoreLost
	case <-bound.C:
		return fmt.Errorf("the other agents have not settled after %v", s.config.SettleTimeout+leaveMargin)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// failures reads all outcomes, which costs their number, on the one agent that
// reports the job's failure.
func (s *Session) failures(ctx context.Context, v *Verdict) ([]Failure, error) {
	if v == nil || v.Kind != Failed || v.By != s.config.Self.ID {
		return nil, nil
	}
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

// outcomesOf reads all outcomes in the order in which they came.
func outcomesOf(ctx context.Context, client *clientv3.Client, k keys) ([]Outcome, error) {
	answer, err := client.Get(ctx, k.outcomes(), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
	if err != nil {
		return nil, fmt.Errorf("cannot read the outcomes: %w", err)
	}
	outcomes := make([]Outcome, 0, len(answer.Kvs))
	for _, kv := range answer.Kvs {
		o, err := decode[Outcome](string(kv.Key), kv.Value)
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}
