package agent

import (
	"context"
	"errors"
	"fmt"
	"os"

	"rdzv/envmap"
	"rdzv/internal/claim"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/secret"
)

// claimHost makes this agent the only one on this host that looks for the others of its job, until
// release is called. Without a launcher, two agents of one host that have no node ranks are two
// jobs with the same command. The store refuses the one that joins later; before there is a store,
// this refuses the one that is started later. The error is an *rdzv.OccupiedError.
//
// A process of another user that has the claim does not count. Agents with different tokens are of
// different jobs.
func claimHost(ctx context.Context, l *Local, events *reporter) (release func(), err error) {
	p, c := l.Placement, l.Config
	if p.Launcher != envmap.None || p.NodeRank != envmap.Unknown || l.Agents == 1 {
		return func() {}, nil
	}
	load := func() (token []byte, err error) { // nil without one; an error is that of the search too
		if !c.Insecure && c.Join == "" && !c.Etcd.Given() {
			token, _ = l.token().Load(events.tokenCreated, nil)
		}
		return token, nil
	}
	token, err := host.Await(ctx, events.slowFiles(l.token().Files()), load)
	if err != nil {
		return nil, err
	}
	job := fmt.Sprintf("%d %q %q %q %q %d %v %q", os.Geteuid(), host.NodeID(), l.Job, c.Store, c.Join,
		c.PortLow, c.Etcd, c.Etcd.Prefix)
	held, err := claim.Take(fmt.Sprintf("joining/%x", secret.Expand(token, "joining\x00"+job, 16)))
	if taken, ok := errors.AsType[*claim.TakenError](err); ok && taken.PID > 0 {
		return nil, &rdzv.OccupiedError{Host: host.Name(), PID: taken.PID}
	}
	if err != nil {
		return func() {}, nil
	}
	return held.Close, nil
}
