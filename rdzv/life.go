package rdzv

import (
	"context"
	"sync/atomic"

	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/signals"
)

// life is how long an agent takes part in an attempt.
type life struct {
	store  *kv.Store       // lost with the registration, or when the signals end
	ctx    context.Context // ends with the verdict or with store
	cancel context.CancelCauseFunc

	answering   context.Context // of answers to other agents; ends with store or when it stops
	stopAnswers context.CancelFunc

	withdrawn atomic.Bool // it has left without workers
}

func newLife(store *kv.Store) *life {
	l := &life{store: store}
	l.ctx, l.cancel = context.WithCancelCause(store.Context())
	l.answering, l.stopAnswers = context.WithCancel(store.Context())
	return l
}

// withdraw says that the leader has let this agent leave the job.
func (l *life) withdraw() {
	l.withdrawn.Store(true)
	l.cancel(ErrWithdrawn)
}

// stop ends the attempt for this agent.
func (l *life) stop(cause error) {
	l.cancel(cause)
	l.stopAnswers()
}

// end stops what belongs to this attempt alone. Calls for it that still run end.
func (l *life) end(cause error, s *signals.Signals) {
	l.stop(cause)
	s.Close()
	l.store.Lose(cause)
}
