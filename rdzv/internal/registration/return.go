package registration

import (
	"context"
	"time"
)

// In a store that no agent hosts, the lease of an agent that lives may be revoked: a leader of an
// etcd cluster that was frozen revokes all leases when it continues, because it has not seen their
// renewals (etcd-io/etcd#15247). The agent then registers again, under the same lease. Therefore
// an agent whose key is gone is lost only if it is still gone after ReturnTime. The key lost/ID
// records that, so that the agent cannot come back, in the same transaction that finds its key
// missing.

// ReturnTime is how long an agent may take to register again. It learns of the deletion of its key
// by a watch, and needs two writes. If the leader's own lease was revoked too, the cluster has
// just continued: a member that was frozen may answer after 7 s.
const (
	ReturnTime    = time.Second
	AllReturnTime = 15 * time.Second
)

// AwaitReturn gives agents the time to register again.
func AwaitReturn(ctx context.Context, returnTime time.Duration) error {
	select {
	case <-time.After(returnTime):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
