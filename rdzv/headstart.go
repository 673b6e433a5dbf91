package rdzv

import (
	"context"
	"fmt"

	"rdzv/rdzv/internal/record"
)

// EndHeadStart tells all agents that rank 0 has had its head start (World.HeadStart). Only its
// agent calls it.
func (s *Session) EndHeadStart(ctx context.Context) error {
	value := record.Encode(record.HeadStartOver{})
	lease := s.registration.Run.JobLease
	if err := s.life.store.Put(ctx, s.keys.Release(), value, lease); err != nil {
		return fmt.Errorf("cannot write that the head start is over: %w", err)
	}
	return nil
}

// HeadStartOver returns a channel that is closed when the agent of rank 0 has called EndHeadStart.
func (s *Session) HeadStartOver() <-chan struct{} { return s.signals.Release.Done() }
