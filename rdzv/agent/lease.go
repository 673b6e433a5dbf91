package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/wrap"
)

// As long as another attempt may follow, the workers run only while no other agent can take this
// one for lost (package rdzv, overlap.go): they have a lease, which the answers of the store renew
// and which package wrap enforces.

// limit gives the workers of the tree the lease, if another attempt may follow this one.
func (w *workers) limit(t *wrap.Tree) {
	if w.world.MayRestart() {
		t.Lease, t.LeaseGrace = &w.lease, w.world.LostGrace
	}
}

// endLease does what the end of the attempt, for this cause, means for its workers.
func (w *workers) endLease(cause error) {
	v, ended := errors.AsType[*rdzv.Verdict](cause)
	switch {
	case !ended:
	case !v.MayRestart():
		w.lease.Release()
	case v.LostAgent() && v.By == w.self.ID:
		w.lease.Expire()
	}
}

// grace is how long the workers may run on at most when the attempt has ended here: those of an
// agent that others may consider lost have less time.
func (w *workers) grace() time.Duration {
	v, ended := errors.AsType[*rdzv.Verdict](context.Cause(w.session.Context()))
	if lost := !ended || v.LostAgent() && v.By == w.self.ID; lost && w.world.MayRestart() {
		return w.world.LostGrace
	}
	return w.local.Config.Grace
}

// leaseOver says that this agent has stopped a worker, although it may not be lost for the others.
func (w *workers) leaseOver(rank int) string {
	return fmt.Sprintf("lost rank %d on %s: stopped it, because its agent had no answer from the "+
		"store for %v", rank, host.Name(), w.local.Config.lostAfter())
}

// lostAfter is how long an agent may be silent before the others consider it lost. In a job with
// restarts it is as long as the store may be silent.
func (c *Config) lostAfter() time.Duration {
	if c.Restarts.Max > 0 {
		return max(c.PeerTimeout, c.StoreTimeout)
	}
	return c.PeerTimeout
}

// lostGrace is how long the workers of a lost agent may run on.
func (c *Config) lostGrace() time.Duration { return min(c.Grace, rdzv.MaxLostGrace) }
