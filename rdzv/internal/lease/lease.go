// Package lease keeps a lease of an etcd cluster alive.
package lease

import (
	"context"
	"errors"
	"sync"
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
	ctx context.Context, client *clientv3.Client, id clientv3.LeaseID, ttl, limit time.Duration,
) error {
	keeping, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(limit, func() { cancel(ErrSilent) })
	defer silence.Stop()
	all := len(client.Endpoints())
	for members := 1; keeping.Err() == nil; {
		renewed, closed := renew(keeping, client, id, ttl, members, func() { silence.Reset(limit) })
		if closed && keeping.Err() == nil && expired(keeping, client, id, ttl/6) {
			return ErrExpired
		}
		members = all
		if renewed {
			members = 1
		}
	}
	return context.Cause(keeping)
}

// renew keeps the lease alive through one member of the cluster until this does not answer soon
// enough for others to be asked before the lease expires. A client's own lessor asks the same member
// until the connection breaks, which that to a frozen or disconnected host does not. With several
// members renew returns as soon as one of them has renewed the lease: a client that is asked again
// takes another member. closed tells that the client considers the lease expired, also if this
// process was stopped meanwhile.
func renew(
	ctx context.Context, client *clientv3.Client, id clientv3.LeaseID, ttl time.Duration, members int,
	note func(),
) (renewed, closed bool) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	answers := make(chan bool)
	for range members {
		asking.Go(func() { ask(ctx, client, id, answers) })
	}
	late := time.NewTimer(min(ttl/6, time.Second))
	defer late.Stop()
	for {
		select {
		case lives := <-answers: // three per TTL
			if !lives {
				return false, true
			}
			note()
			if members > 1 {
				return true, false
			}
			late.Reset(ttl * 2 / 3)
		case <-late.C:
			return false, false
		case <-ctx.Done():
			return false, false
		}
	}
}

// ask renews the lease through one member, and delivers true after each renewal, false when the
// client considers the lease expired.
func ask(
	ctx context.Context, client *clientv3.Client, id clientv3.LeaseID, answers chan<- bool,
) {
	lessor := clientv3.NewLease(client) // with a stream of its own
	defer lessor.Close()
	renewals, _ := lessor.KeepAlive(ctx, id) // closed if there is an error
	for lives := true; lives; {
		_, lives = <-renewals
		select {
		case answers <- lives:
		case <-ctx.Done():
			return
		}
	}
}

// expired reports whether the store says, within the limit, that there is no such lease.
func expired(
	ctx context.Context, client *clientv3.Client, id clientv3.LeaseID, limit time.Duration,
) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := client.TimeToLive(ctx, id)
	return err == nil && answer.TTL < 0 // 0 is less than a second
}
