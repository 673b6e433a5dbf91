package registration

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
)

// ErrDeposed means that this agent's lease has expired, so that another agent leads.
var ErrDeposed = errors.New("this agent does not lead the job any more")

// election lets the agents of a run lead, one after another, in the order in which they have
// joined.
type election struct {
	client     *clientv3.Client
	agents     keys.Family
	self       string        // ID of this agent
	returnTime time.Duration // see AwaitReturn
	turn       Turn          // that of this agent, as far as it is known
}

// campaign leads the job as soon as this agent is the first one, until it leaves, or returns why it
// cannot.
func (e *election) campaign(
	ctx context.Context, lead func(context.Context, Turn) error, leads *atomic.Bool,
) error {
	err := ErrDeposed
	for errors.Is(err, ErrDeposed) && ctx.Err() == nil { // it may have registered again
		var t Turn
		if t, err = e.await(ctx); err == nil {
			leads.Store(true)
			err = lead(ctx, t)
			leads.Store(!errors.Is(err, ErrDeposed))
		}
	}
	return err
}

// await waits until all agents that joined before this one are gone.
func (e *election) await(ctx context.Context) (Turn, error) {
	t := e.turn
	t.key = e.agents.Of(e.self)
	for {
		own, err := kv.Await(ctx, e.client, t.key, kv.Exists)
		if err != nil {
			return t, err
		}
		t.revision = own.CreateRevision
		earlier, err := kv.Get(ctx, e.client, string(e.agents),
			append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(t.revision-1))...)
		if err != nil || len(earlier.Kvs) == 0 {
			return t, err
		}
		if err := e.awaitEnd(ctx, earlier.Kvs[0]); err != nil {
			return t, err
		}
	}
}

// awaitEnd waits until another agent is gone for good.
func (e *election) awaitEnd(ctx context.Context, agent *mvccpb.KeyValue) error {
	_, err := kv.Await(ctx, e.client, string(agent.Key), func(kv *mvccpb.KeyValue) bool {
		return kv == nil || kv.CreateRevision != agent.CreateRevision // it may have registered again
	})
	if err == nil {
		err = AwaitReturn(ctx, e.returnTime)
	}
	return err
}

// Turn is for an agent that has been elected to lead the job, until its key agent/ID is deleted:
// from then on Commit returns ErrDeposed. That of the agent that hosts the store is zero.
type Turn struct {
	Lease    clientv3.LeaseID // of what it writes
	LeaseTTL time.Duration    // of the agents' own leases
	Revoked  func() bool      // its own lease was revoked a short time ago; nil: never

	// It leads as long as its own key exists, which was created at a revision. One that is gone never
	// returns.
	key      string
	revision int64
}

// Elected tells whether this agent leads because it has been elected, and another one may lead
// next. Otherwise it hosts the store.
func (t *Turn) Elected() bool { return t.key != "" }

// Commit executes a transaction of the leader, and tells whether the conditions were true. It
// returns ErrDeposed, without any change, if this agent is not the leader any more.
func (t *Turn) Commit(
	ctx context.Context, client *clientv3.Client, ifs []clientv3.Cmp, then ...clientv3.Op,
) (done bool, err error) {
	var otherwise []clientv3.Op
	if t.Elected() {
		ifs = append(ifs, clientv3.Compare(clientv3.CreateRevision(t.key), "=", t.revision))
		otherwise = append(otherwise, clientv3.OpGet(t.key, clientv3.WithKeysOnly()))
	}
	answer, err := kv.Commit(ctx, client, ifs, then, otherwise)
	if err != nil || answer.Succeeded || !t.Elected() {
		return err == nil && answer.Succeeded, err
	}
	found := answer.Responses[0].GetResponseRange().Kvs
	if len(found) == 0 || found[0].CreateRevision != t.revision {
		return false, ErrDeposed
	}
	return false, nil
}
