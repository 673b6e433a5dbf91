package rdzv

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Fail says that a worker of this agent failed. If nobody said anything before,
// this is how the job ends, for all. It returns when the store has it.
func (s *Session) Fail(ctx context.Context, w Worker) error {
	return s.writeVerdict(ctx, failedVerdict(s.config.Self.ID, s.config.Self.Host, w))
}

// End says that this agent was told by a signal to end the job.
func (s *Session) End(ctx context.Context, signal int) error {
	return s.writeVerdict(ctx, Verdict{
		Kind: Ended, By: s.config.Self.ID, Host: s.config.Self.Host, PID: s.config.Self.PID,
		Rank: Any, LocalRank: Any, Signal: signal,
	})
}

// Lose says that something without which this agent's workers must not run is
// gone, such as the launcher that started them.
func (s *Session) Lose(ctx context.Context, what string) error {
	return s.writeVerdict(ctx, Verdict{
		Kind: Lost, By: s.config.Self.ID, Host: s.config.Self.Host, PID: s.config.Self.PID,
		Rank: Any, LocalRank: Any, Text: what,
	})
}

// Move says that all who are in this store go to another one, which has turned
// up elsewhere; where names the way for people. It reports whether they go: a job
// whose world is agreed, or that has ended, does not move.
func (s *Session) Move(ctx context.Context, where string) (moved bool, err error) {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	return writeVerdict(ctx, s.client, s.keys, Verdict{
		Kind: Moved, By: s.config.Self.ID, Host: s.config.Self.Host, PID: s.config.Self.PID,
		Rank: Any, LocalRank: Any, Text: "the store is " + where + " now",
	}, s.keys.world())
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
	put := clientv3.OpPut(key, encode(newOutcome(s.config.Self.Host, workers)))
	if _, err := commit(ctx, s.client, nil, []clientv3.Op{put}, nil); err != nil {
		return fmt.Errorf("cannot tell the job how the workers ended: %w", err)
	}
	return nil
}
