package rdzv

import (
	"context"
	"fmt"
	"time"

	"rdzv/rdzv/internal/record"
)

// Absent tells all agents that rank 0 does not listen on MASTER_PORT although it has run for some
// time. Only its agent calls it. python is Unreached.Python of rank 0.
func (s *Session) Absent(ctx context.Context, python int) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	value := encode(Unreached{Rank: 0, Python: python})
	if err := s.put(ctx, s.keys.absent(), value, s.registration.jobLease); err != nil {
		return fmt.Errorf("cannot write that rank 0 does not listen: %w", err)
	}
	return nil
}

// Rank0Absent returns a channel that is closed when rank 0's agent has called Absent. The agents
// then call Connecting when workers of theirs try to connect to rank 0.
func (s *Session) Rank0Absent() <-chan struct{} { return s.haveAbsent }

// Connecting publishes how many workers of this agent have been trying to connect to rank 0, and
// for how long all of them have.
func (s *Session) Connecting(ctx context.Context, ranks int, waited time.Duration) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	value := encode(record.Connecting{Ranks: ranks, For: waited})
	key := s.keys.connecting(s.config.Self.ID)
	if err := s.put(ctx, key, value, s.registration.lease); err != nil {
		return fmt.Errorf("cannot write how many workers try to connect to rank 0: %w", err)
	}
	return nil
}

// maxProgress is how many reports wait for InitProgress.
const maxProgress = 8

// InitProgress delivers what the leader reports about init_process_group, see LeaderConfig.Init.
func (s *Session) InitProgress() <-chan InitProgress { return s.progress }

// takeProgress notes a report. It ignores one that it cannot read, and more if nobody receives
// them.
func (s *Session) takeProgress(value []byte) {
	if p, err := decode[InitProgress](value); err == nil {
		select {
		case s.progress <- p:
		default:
		}
	}
}
