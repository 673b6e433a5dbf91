package rdzv

import (
	"context"
	"fmt"

	"rdzv/rdzv/internal/record"
)

// Ready reports that this agent can start its workers with what rank 0's agent exports, or all its
// problems, and what facts are different with it, and waits until all agents can. An agent that
// cannot calls it even if the others do not wait. If the job ends before that, the error is the
// cause of the end of Context.
func (s *Session) Ready(ctx context.Context, problems []Problem, facts Facts) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	key := s.keys.ready(s.config.Self.ID)
	value := encode(readiness{Problems: record.ClippedProblems(problems), Facts: facts.Clipped()})
	// Not with this agent's lease: if that is revoked it does not confirm again, and all would wait.
	if err := s.put(ctx, key, value, s.registration.jobLease); err != nil {
		return fmt.Errorf("cannot write that this agent is ready: %w", err)
	}
	select {
	case <-s.haveStart:
	case <-s.ctx.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return context.Cause(s.ctx)
}
