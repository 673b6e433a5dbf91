package meet

import (
	"errors"
	"fmt"
	"time"

	"rdzv/rdzv/meet/internal/gate"
)

// refusedTimeout is how long an agent searches on after the host of the store has refused it.
const refusedTimeout = 30 * time.Second

// A RefusedError means that the host of the store has a different token, so that waiting for it
// does not help.
type RefusedError struct {
	DifferentToken
	After time.Duration // since it refused this agent for the first time
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s has refused this agent for %v", hostAndAddr(e.Host, e.Addr), e.After)
}

// noteRefusal begins to count when an agent refuses this one, and stops when it no longer does. In
// an election the agents that refuse each other may all be searching: then none gives up.
func (s *search) noteRefusal(t *target) {
	refused := errors.Is(t.err, gate.ErrDifferentToken)
	switch {
	case refused && s.refusedBy == nil && s.plan.heard == nil:
		s.refusedBy, s.refused = t, time.After(s.refusedTimeout)
	case !refused && s.refusedBy == t:
		s.refusedBy, s.refused = nil, nil
	}
}

func (s *search) differentToken() DifferentToken {
	return DifferentToken{Host: s.refusedBy.name, Addr: s.refusedBy.addr.Addr(), Hosting: true}
}
