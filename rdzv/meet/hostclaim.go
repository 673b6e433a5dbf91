package meet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"rdzv/internal/claim"
)

var errClaimed = errors.New("this agent has claimed the host")

// byClaim is the election among the agents on the host that --store names, whatever their runtime
// directories are: the agent that has claimed the host hosts. The others search for the store, and
// try to claim the host meanwhile, because the agent that has the claim may end.
func byClaim(ctx context.Context, l *locator, p *plan) (*Meeting, error) {
	host := &hostClaim{name: fmt.Sprintf("host/%x-%d", p.public, p.ports[0])}
	m, err := findOrClaim(ctx, l, p, host)
	if !errors.Is(err, errClaimed) {
		host.release()
		return m, err
	}
	if m, err = l.hostStore(ctx, p); err != nil {
		host.release()
		return nil, l.explainPortInUse(ctx, p, err)
	}
	m.unclaim = host.release
	return m, nil
}

// findOrClaim searches for the store until it is found or this agent has the claim (errClaimed).
func findOrClaim(ctx context.Context, l *locator, p *plan, host *hostClaim) (*Meeting, error) {
	if host.try() {
		return nil, errClaimed
	}
	searching, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() {
		for pause(searching, lastWait) {
			if host.try() {
				cancel(errClaimed)
			}
		}
	})
	return l.findStore(searching, p)
}

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
