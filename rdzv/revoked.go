package rdzv

import (
	"cmp"
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/lease"
)

// In a store that no agent hosts, the lease of an agent that lives may be revoked: a leader of an
// etcd cluster that was frozen revokes all leases when it continues, because it has not seen their
// renewals (etcd-io/etcd#15247). The agent then registers again, under the same lease. Therefore
// an agent whose key is gone is lost only if it is still gone after returnTime. The key lost/ID
// records that, so that the agent cannot come back, in the same transaction that finds its key
// missing.

// returnTime is how long an agent may take to register again. It learns of the deletion of its key
// by a watch, and needs two writes. If the leader's own lease was revoked too, the cluster has
// just continued: a member that was frozen may answer after 7 s.
const (
	returnTime      = time.Second
	allReturnTime   = 15 * time.Second
	revokedRecently = time.Minute
)

// errLost means that the others consider this agent lost.
var errLost = errors.New(
	"the store has revoked this agent's lease, and the others consider it lost")

// watchOwn lets keepLease ask for the lease when the key of this agent is deleted.
func (r *registration) watchOwn() {
	key := r.run.agent(r.config.Self.ID)
	for {
		if _, err := awaitKey(r.current, r.client, key, isGone); err != nil {
			return
		}
		select {
		case r.doubts <- struct{}{}:
		default: // it will ask
		}
		if _, err := awaitKey(r.current, r.client, key, exists); err != nil {
			return
		}
	}
}

// registerAgain puts the keys of this agent again whose lease the store has revoked.
func (r *registration) registerAgain() error {
	r.revoked.Store(new(time.Now()))
	s := r.last.Load()
	ctx, cancel := context.WithTimeout(r.current, r.config.StoreTimeout)
	defer cancel()
	_, err := again(ctx, func() (any, error) {
		return nil, lease.Restore(ctx, r.client, r.lease, r.config.PeerTimeout)
	})
	if err != nil || s == nil {
		return err
	}
	id := r.config.Self.ID
	member := clientv3.OpPut(s.keys.member(id), encode(s.config.Self), clientv3.WithLease(r.lease))
	puts := append(s.occupy(), s.putAgent(), member)
	conditions := append(r.runs(), absent(r.run.agent(id)), absent(r.run.lost(id)))
	count := clientv3.OpGet(r.run.agent(id), clientv3.WithCountOnly())
	answer, err := commit(ctx, r.client, conditions, puts, []clientv3.Op{count})
	if err == nil && !answer.Succeeded && answer.Responses[0].GetResponseRange().Count == 0 {
		_, _ = r.client.Revoke(ctx, r.lease) // otherwise it expires
		return errLost                       // or the run is over
	}
	return err
}

// revokedRecently tells whether the lease of this agent was revoked a short time ago.
func (r *registration) revokedRecently() bool {
	at := r.revoked.Load()
	return at != nil && time.Since(*at) < revokedRecently
}

// awaitReturn gives agents the time to register again.
func awaitReturn(ctx context.Context, c *LeaderConfig) error {
	select {
	case <-time.After(cmp.Or(c.returnTime, returnTime)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
