package rdzv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
func (l *leased) watchOwn() {
	key := l.run.agent(l.config.Self.ID)
	for {
		found, events, stop, err := readAndWatch(l.current, l.client, key)
		if err != nil {
			return
		}
		exists := len(found.Kvs) > 0
		for {
			if !exists {
				select {
				case l.doubts <- struct{}{}:
				default: // it will ask
				}
			}
			response, open := l.next(events)
			if !open || response.Err() != nil {
				break
			}
			for _, e := range response.Events {
				exists = e.Type == clientv3.EventTypePut
			}
		}
		stop()
	}
}

// next is the next response of a watch; open is false when the watch or this agent's time ends.
func (l *leased) next(events clientv3.WatchChan) (response clientv3.WatchResponse, open bool) {
	select {
	case response, open = <-events:
	case <-l.current.Done():
	}
	return response, open
}

// registerAgain puts the keys of this agent again whose lease the store has revoked. first is the
// session that got the lease.
func (l *leased) registerAgain(first *Session) error {
	l.revoked.Store(new(time.Now()))
	s := l.last.Load()
	ctx, cancel := context.WithTimeout(l.current, first.config.StoreTimeout)
	defer cancel()
	_, err := again(ctx, func() (any, error) {
		return nil, lease.Restore(ctx, first.client, first.leases.own, first.config.PeerTimeout)
	})
	if err != nil || s == nil {
		return err
	}
	id := l.config.Self.ID
	_, puts := s.place()
	member := clientv3.OpPut(s.keys.member(id), encode(s.config.Self),
		clientv3.WithLease(s.leases.own))
	puts = append(puts, l.putAgent(), member)
	conditions := []clientv3.Cmp{l.runs(), absent(l.run.agent(id)), absent(l.run.lost(id))}
	count := clientv3.OpGet(l.run.agent(id), clientv3.WithCountOnly())
	answer, err := commit(ctx, l.client, conditions, puts, []clientv3.Op{count})
	if err == nil && !answer.Succeeded && answer.Responses[0].GetResponseRange().Count == 0 {
		_, _ = first.client.Revoke(ctx, first.leases.own) // otherwise it expires
		return errLost                                    // or the run is over
	}
	return err
}

// miss handles that the key of an agent was deleted.
func (l *Leader) miss(id string) {
	l.awaitWorkers(id, true) // from now on
	l.missing = append(l.missing, id)
	if l.returned == nil {
		l.returned = time.After(cmp.Or(l.returnTime, l.config.returnTime, returnTime))
	}
}

// returnTime is how long agents may take if not the usual time, otherwise 0.
func (l *leased) returnTime() time.Duration {
	if at := l.revoked.Load(); at != nil && time.Since(*at) < revokedRecently {
		return allReturnTime
	}
	return 0
}

// loseMissing makes the missing agents lost that have not registered again. The watch delivers
// that.
func (l *Leader) loseMissing(ctx context.Context) error {
	missing := l.missing
	l.missing, l.returned = nil, nil
	for _, id := range missing {
		if _, err := l.declareLost(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// declareLost records that an agent is lost, unless it is there. It reports whether it has.
func (l *Leader) declareLost(ctx context.Context, id string) (lost bool, err error) {
	gone := []clientv3.Cmp{absent(l.run.agent(id))}
	if lost, err = l.commitIf(ctx, gone, l.put(l.run.lost(id), encode(true))); err != nil {
		err = fmt.Errorf("cannot write that agent %q is lost: %w", id, err)
	}
	return lost, err
}

// awaitOwn returns the revision at which the key of this agent was created, when it exists.
func (l *leased) awaitOwn(ctx context.Context, key string) (int64, error) {
	for {
		found, events, stop, err := readAndWatch(ctx, l.client, key)
		if err != nil {
			return 0, err
		}
		release := context.AfterFunc(ctx, stop)
		if len(found.Kvs) == 0 {
			awaitPut(found, events)
		}
		release()
		stop()
		switch {
		case len(found.Kvs) > 0:
			return found.Kvs[0].CreateRevision, nil
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		}
	}
}

// awaitReturn gives agents the time to register again.
func (l *leased) awaitReturn(ctx context.Context) error {
	select {
	case <-time.After(cmp.Or(l.config.Lead.returnTime, returnTime)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
