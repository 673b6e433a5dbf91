package rdzv

import (
	"context"
	"time"
)

// StalledCode is the exit code of a job that has ended because it stalled.
const StalledCode = 119

// Stall ends the attempt because it makes no progress, unless it has ended already. took is how
// long its workers have run.
func (s *Session) Stall(ctx context.Context, stall Stall, took time.Duration) error {
	stall.Reason, stall.Collectives = clip(stall.Reason), clip(stall.Collectives)
	v := s.verdictOf(Stalled)
	v.Stall, v.Code, v.Took = &stall, StalledCode, took
	return s.endWith(ctx, v)
}
