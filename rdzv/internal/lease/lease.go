// Package lease grants leases of an etcd cluster and keeps them alive.
package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Errors of Keep.
var (
	ErrExpired = errors.New("the lease has expired or was revoked")
	ErrSilent  = errors.New("the store does not answer")
)

// Seconds is the TTL of etcd for a duration, rounded up.
func Seconds(ttl time.Duration) int64 { return int64((ttl + time.Second - 1) / time.Second) }

// Keep keeps a lease alive until ctx ends, and returns ctx's cause. It returns ErrExpired when the
// store says that there is no such lease, and ErrSilent when it was not renewed for limit. The
// limit may be longer than the TTL: a cluster without a quorum does not revoke leases, and extends
// them when it has one again.
func Keep(
	ctx context.Context, client *clientv3.Client, id clientv3.LeaseID, limit time.Duration,
) error {
	keeping, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(limit, func() { cancel(ErrSilent) })
	defer silence.Stop()
	for {
		// The client closes the channel when the lease has expired, and when the store did not answer
		// for the TTL.
		renewals, err := client.KeepAlive(keeping, id)
		if err != nil {
			return fmt.Errorf("cannot keep a lease alive: %w", err)
		}
		for range renewals {
			silence.Reset(limit)
		}
		if keeping.Err() == nil && expired(keeping, client, id) {
			return ErrExpired
		}
		if keeping.Err() != nil {
			return context.Cause(keeping)
		}
	}
}

// expired reports whether the store says that there is no such lease.
func expired(ctx context.Context, client *clientv3.Client, id clientv3.LeaseID) bool {
	answer, err := client.TimeToLive(ctx, id)
	return err == nil && answer.TTL <= 0
}
