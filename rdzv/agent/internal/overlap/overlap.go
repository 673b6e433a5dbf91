// Package overlap keeps the workers of two attempts apart on the side of an agent.
//
// As long as another attempt may follow, the workers run only while no other agent can take this
// one for lost (package rdzv, overlap.go): they have a lease, which the answers of the store renew
// and which package wrap enforces.
package overlap

import (
	"errors"
	"time"

	"rdzv/rdzv"
	"rdzv/wrap"
)

// Lease is that of the workers of an agent in one attempt.
type Lease struct {
	*wrap.Lease
	World rdzv.World
	ID    string        // of the agent
	Grace time.Duration // of workers that are stopped
}

// Limit gives the workers of the tree the lease, if another attempt may follow this one.
func (l Lease) Limit(t *wrap.Tree) {
	if l.World.MayRestart() {
		t.Lease, t.LeaseGrace = l.Lease, time.Duration(l.World.LostGrace)
	}
}

// End does what the end of the attempt, for this cause, means for its workers.
func (l Lease) End(cause error) {
	v, ended := errors.AsType[*rdzv.Verdict](cause)
	switch {
	case !ended:
	case !v.MayRestart():
		l.Release()
	case v.LostAgent() && v.By == l.ID:
		l.Expire()
	}
}

// GraceAfter is how long the workers may run on at most when the attempt has ended here for this
// cause: those of an agent that others may consider lost have less time.
func (l Lease) GraceAfter(cause error) time.Duration {
	v, ended := errors.AsType[*rdzv.Verdict](cause)
	if lost := !ended || v.LostAgent() && v.By == l.ID; lost && l.World.MayRestart() {
		return time.Duration(l.World.LostGrace)
	}
	return l.Grace
}
