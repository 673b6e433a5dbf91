package meet

import (
	"errors"
	"math/rand/v2"
	"time"

	"rdzv/internal/claim"
)

// otherUserLimit is how long an agent does not host because of another user's process that has the
// claim of the host: it may be an agent of the same job, whose store is then found.
const otherUserLimit = time.Second

// A hostClaim determines which agent on a host hosts the store. It belongs to the network
// namespace, as the ports of the store do.
type hostClaim struct {
	name    string
	held    *claim.Claim // nil: this agent does not have it
	without time.Time    // when this agent hosts without the claim; zero unless another user has it
}

// try claims the host, if no other agent of this user has. Another user may listen at any address
// and must not keep this job from running. The agents then wait for different times, so that one of
// them finds the store of another.
func (h *hostClaim) try() bool {
	held, err := claim.Take(h.name)
	_, taken := errors.AsType[*claim.TakenError](err)
	switch {
	case err == nil:
		h.held = held
		return true
	case taken:
		h.without = time.Time{}
		return false
	case h.without.IsZero():
		h.without = time.Now().Add(otherUserLimit + rand.N(otherUserLimit))
	}
	return time.Now().After(h.without)
}

// release releases the claim, if this agent has it.
func (h *hostClaim) release() {
	if h.held != nil {
		h.held.Close()
		h.held = nil
	}
}
