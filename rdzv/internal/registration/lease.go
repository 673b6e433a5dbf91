package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/lease"
)

// errLost means that the others consider this agent lost.
var errLost = errors.New(
	"the store has revoked this agent's lease, and the others consider it lost")

// ownLease is the lease of the keys of this agent.
type ownLease struct {
	client *clientv3.Client
	config *Config
	id     clientv3.LeaseID
	ttl    time.Duration // a cluster may grant no short one

	own     atomic.Pointer[ownKeys]   // nil before this agent has joined
	revoked atomic.Pointer[time.Time] // when the lease was revoked the last time; nil: never
	doubts  chan struct{}             // the key of this agent was deleted
}

// ownKeys are those that have the lease.
type ownKeys struct {
	run     keys.Run
	present []clientv3.Cmp // the run is the present one
	puts    []clientv3.Op
}

func newOwnLease(client *clientv3.Client, c *Config) *ownLease {
	return &ownLease{client: client, config: c, doubts: make(chan struct{}, 1)}
}

// grant returns a new lease, and its TTL, which may be longer.
func grant(ctx context.Context, store *kv.Store, job string, ttl time.Duration) (
	clientv3.LeaseID, time.Duration, error,
) {
	ctx, done := store.Until(ctx)
	defer done()
	granted, err := kv.Again(ctx, func() (*clientv3.LeaseGrantResponse, error) {
		return store.Client.Grant(ctx, lease.Seconds(ttl))
	})
	if err != nil {
		return 0, 0, fmt.Errorf("cannot get a lease for job %q: %w", job, err)
	}
	return granted.ID, time.Duration(granted.TTL) * time.Second, nil
}

// keep keeps the lease alive until ctx ends, or returns why it cannot. Without it the others
// consider this agent lost. It asks for renewals as often as the peer timeout requires, also if the
// TTL is longer.
func (l *ownLease) keep(ctx context.Context, renewed func(until time.Duration)) (err error) {
	ttl := l.config.PeerTimeout
	for err == nil {
		err = lease.Keep(ctx, l.client, l.id, ttl, l.config.StoreTimeout, func(sent time.Duration) {
			renewed(sent + ttl)
		}, l.doubts)
		if err == lease.ErrRevoked && ctx.Err() == nil {
			err = l.registerAgain(ctx)
		}
	}
	return err
}

// watchOwn lets keep ask for the lease when the key of this agent is deleted.
func (l *ownLease) watchOwn(ctx context.Context, key string) {
	for {
		if _, err := kv.Await(ctx, l.client, key, kv.IsGone); err != nil {
			return
		}
		select {
		case l.doubts <- struct{}{}:
		default: // it will ask
		}
		if _, err := kv.Await(ctx, l.client, key, kv.Exists); err != nil {
			return
		}
	}
}

// registerAgain puts the keys of this agent again whose lease the store has revoked.
func (l *ownLease) registerAgain(ctx context.Context) error {
	l.revoked.Store(new(time.Now()))
	own := l.own.Load()
	ctx, cancel := context.WithTimeout(ctx, l.config.StoreTimeout)
	defer cancel()
	_, err := kv.Again(ctx, func() (any, error) {
		return nil, lease.Restore(ctx, l.client, l.id, l.config.PeerTimeout)
	})
	if err != nil || own == nil {
		return err
	}
	id := l.config.Self.ID
	agent := own.run.Agents().Of(id)
	conditions := append(slices.Clip(own.present), kv.Absent(agent), kv.Absent(own.run.Lost().Of(id)))
	count := clientv3.OpGet(agent, clientv3.WithCountOnly())
	answer, err := kv.Commit(ctx, l.client, conditions, own.puts, []clientv3.Op{count})
	if err == nil && !answer.Succeeded && answer.Responses[0].GetResponseRange().Count == 0 {
		_, _ = l.client.Revoke(ctx, l.id) // otherwise it expires
		return errLost                    // or the run is over
	}
	return err
}

// recently is how long the revocation of a lease shows that the cluster has just continued.
const recently = time.Minute

// revokedRecently tells whether the lease of this agent was revoked a short time ago.
func (l *ownLease) revokedRecently() bool {
	at := l.revoked.Load()
	return at != nil && time.Since(*at) < recently
}
