package rdzv

import (
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Fail says that a worker of this agent failed. If nobody said anything before,
// this is how the job ends, for all. It returns when the store has it.
func (s *Session) Fail(ctx context.Context, w Worker) error {
	return s.propose(ctx, failure(s.config.Self.ID, s.config.Self.Host, w))
}

func failure(id, host string, w Worker) Verdict {
	return Verdict{
		Kind: Failed, By: id, Host: host, PID: w.PID,
		Rank: w.Rank, LocalRank: w.LocalRank, Code: w.Code, Signal: w.Signal, Took: w.Took, Text: w.Text,
	}
}

// End says that this agent was told by a signal to end the job.
func (s *Session) End(ctx context.Context, signal int) error {
	return s.propose(ctx, Verdict{
		Kind: Ended, By: s.config.Self.ID, Host: s.config.Self.Host, PID: s.config.Self.PID,
		Rank: Any, LocalRank: Any, Signal: signal,
	})
}

// Lose says that something without which this agent's workers must not run is
// gone, such as the launcher that started them.
func (s *Session) Lose(ctx context.Context, what string) error {
	return s.propose(ctx, Verdict{
		Kind: Lost, By: s.config.Self.ID, Host: s.config.Self.Host, PID: s.config.Self.PID,
		Rank: Any, LocalRank: Any, Text: what,
	})
}

// propose writes the verdict unless there is one.
func (s *Session) propose(ctx context.Context, v Verdict) error {
	ctx, cancel := s.whileThere(ctx)
	defer cancel()
	return propose(ctx, s.client, s.keys, v)
}

// whileThere is ctx, ended by the loss of the store: nobody will answer then.
func (s *Session) whileThere(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	s.wg.Go(func() {
		select {
		case <-s.lost:
			cancel(ErrStoreLost)
		case <-done:
		}
	})
	return ctx, sync.OnceFunc(func() {
		close(done)
		cancel(context.Canceled)
	})
}

func propose(ctx context.Context, client *clientv3.Client, k keys, v Verdict) error {
	_, err := client.Txn(ctx).If(absent(k.verdict())).Then(clientv3.OpPut(k.verdict(), encode(v))).Commit()
	if err != nil {
		return fmt.Errorf("cannot tell the job of its end (%v): %w", &v, err)
	}
	return nil
}

// Settle says how all workers of this agent have ended; an agent that started
// none gives none.
func (s *Session) Settle(ctx context.Context, workers []Worker) error {
	ctx, cancel := s.whileThere(ctx)
	defer cancel()
	o := Outcome{Host: s.config.Self.Host, Workers: workers}
	if _, err := s.client.Put(ctx, s.keys.outcome(s.config.Self.ID), encode(o)); err != nil {
		return fmt.Errorf("cannot tell the job how the workers ended: %w", err)
	}
	return nil
}
