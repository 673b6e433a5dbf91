// Package registration lets the store know that an agent is alive, in all attempts of its job.
//
// An agent is alive as long as its key agent/ID exists, which it puts with its first member. Where
// an agent hosts the store, that one deletes the key when the presence stream of the other has
// ended (Leader.AgentEnded of package rdzv). In any other store the key has a lease, which its
// agent renews (lease.go). All else is the same, except for who leads: the host, or whoever joined
// first (election.go).
package registration

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"rdzv/internal/boottime"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/presence"
)

// Registration is how the store knows that an agent is alive. It is the same in all attempts.
type Registration struct {
	Store *kv.Store // until the store does not know this agent any more
	Run   *Run

	config Config
	stream *presence.Stream // nil in a store without that service, and in the process that hosts it

	// In a store that no agent hosts; otherwise zero.
	lease    *ownLease
	election *election
	leads    atomic.Bool     // this agent has been elected
	current  context.Context // of what keeping waits for
	cancel   context.CancelFunc
	keeping  sync.WaitGroup
}

// New is a registration that has yet to be made.
func New(client *clientv3.Client, c Config) *Registration {
	store := kv.NewStore(context.Background(), client)
	r := &Registration{
		Store: store, config: c,
		Run: newRun(store, &c),
	}
	r.current, r.cancel = context.WithCancel(context.Background())
	return r
}

// Register lets the store know of this agent: by a presence stream or, in a store without that
// service, by a lease. The process that hosts the store needs neither.
func (r *Registration) Register(ctx context.Context) (err error) {
	conn := r.Store.Client.ActiveConnection()
	if conn == nil {
		return nil
	}
	lost := func() { r.Store.Lose(kv.ErrLost) }
	r.stream, err = openStream(ctx, conn, r.config.Self.ID, r.config.ConnectTimeout, lost)
	if status.Code(err) == codes.Unimplemented {
		err = r.registerByLease(ctx)
	}
	return err
}

// registerByLease registers in a store that no agent hosts.
func (r *Registration) registerByLease(ctx context.Context) (err error) {
	c := &r.config
	if c.NoLease != nil {
		return c.NoLease
	}
	granted := boottime.Now()
	l := newOwnLease(r.Store.Client, c)
	if l.id, l.ttl, err = grant(ctx, r.Store, c.Job, c.PeerTimeout); err != nil {
		return err
	}
	r.lease = l
	r.Run.of(l.id, c.Self)
	r.renewed(granted + c.PeerTimeout)
	r.keeping.Go(func() { r.lose(l.keep(r.current, r.renewed)) })
	return nil
}

// lose ends the use of the store, because of err, unless that is nil or this agent leaves.
func (r *Registration) lose(err error) {
	if err != nil && r.current.Err() == nil {
		r.Store.Lose(kv.Lost("%v", err))
	}
}

// Elects tells whether no agent hosts the store, so that the agents elect the leader.
func (r *Registration) Elects() bool { return r.lease != nil }

// Leads tells whether this agent has been elected.
func (r *Registration) Leads() bool { return r.leads.Load() }

// Lease is that of the keys of this agent; 0 if an agent hosts the store.
func (r *Registration) Lease() clientv3.LeaseID {
	if r.lease == nil {
		return 0
	}
	return r.lease.id
}

// TTL is that of Lease, which may be longer than the peer timeout.
func (r *Registration) TTL() time.Duration {
	if r.lease == nil {
		return 0
	}
	return r.lease.ttl
}

// PutAgent puts the key that exists from this agent's first attempt to its last.
func (r *Registration) PutAgent() clientv3.Op {
	m := r.config.Self.Identity() // for those who report its loss
	return clientv3.OpPut(r.Run.Keys.Agents().Of(m.ID), record.Encode(m),
		clientv3.WithLease(r.Lease()))
}

// Own notes what puts the keys that have the lease of this agent.
func (r *Registration) Own(puts []clientv3.Op) {
	if r.lease != nil {
		r.lease.own.Store(&ownKeys{r.Run.Keys, r.Run.Present(), puts})
	}
}

// Joined begins what an agent of a run does until it leaves, in a store that no agent hosts. last
// is the answer to which agent joined before it.
func (r *Registration) Joined(last *etcdserverpb.ResponseOp) {
	c, l := &r.config, r.lease
	r.election = &election{
		client: r.Store.Client, agents: r.Run.Keys.Agents(), self: c.Self.ID,
		returnTime: c.ReturnTime, turn: Turn{
			Lease: r.Run.JobLease, LeaseTTL: c.PeerTimeout, Revoked: l.revokedRecently,
		},
	}
	r.leads.Store(last != nil && len(last.GetResponseRange().GetKvs()) == 0)
	r.Run.member = true
	r.keeping.Go(func() { l.watchOwn(r.current, r.Run.Keys.Agents().Of(c.Self.ID)) })
	r.keeping.Go(func() { r.lose(r.Run.keepJobLease(r.current, c.StoreTimeout)) })
	r.keeping.Go(func() {
		if err := r.election.campaign(r.current, c.Lead, &r.leads); err != nil {
			r.lose(fmt.Errorf("cannot lead job %q: %w", c.Job, err))
		}
	})
}

// AwaitTurn waits until all agents that joined before this one are gone.
func (r *Registration) AwaitTurn(ctx context.Context) (Turn, error) { return r.election.await(ctx) }

// renewalsPerTimeout is how often per peer timeout an agent sends a message to a store that another
// one hosts.
const renewalsPerTimeout = 5

// Renew renews this agent's presence from now on in a store that an agent hosts, if another attempt
// may follow the one of the world. asked is when this agent sent a message that has been answered.
func (r *Registration) Renew(w record.World, asked time.Duration) {
	if r.stream == nil || !w.MayRestart() || w.PeerTimeout <= 0 {
		return
	}
	peerTimeout := time.Duration(w.PeerTimeout)
	r.renewed(asked + peerTimeout)
	r.stream.Renew(peerTimeout/renewalsPerTimeout, boottime.Now, func(sent time.Duration) {
		r.renewed(sent + peerTimeout)
	})
}

func (r *Registration) renewed(until time.Duration) {
	if r.config.Renewed != nil {
		r.config.Renewed(until)
	}
}

// Hold returns a duplicate of the socket of the connection to a store that another agent hosts, see
// [presence.Stream.Hold]. It is nil in other stores.
func (r *Registration) Hold() (*os.File, error) {
	if r.stream == nil {
		return nil, nil
	}
	return r.stream.Hold()
}

// Parting is what an agent says when it leaves.
type Parting int

const (
	// Nothing makes the others consider this agent lost at once.
	Nothing Parting = iota
	// Empty makes them consider it lost, but none of its processes runs.
	Empty
	// Goodbye says that it has left, and that none of its processes runs.
	Goodbye
	// Over is Goodbye when all agents have settled and form no other attempt: the last one removes
	// the run.
	Over
)

// Leave ends the registration.
func (r *Registration) Leave(p Parting) {
	r.cancel()
	r.keeping.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	switch {
	case r.stream != nil && p >= Goodbye:
		r.stream.Leave(ctx)
	case r.stream != nil && p == Empty:
		r.stream.LeaveEmpty(ctx)
	case r.stream != nil:
		r.stream.Abandon()
	case r.lease != nil:
		if p != Nothing {
			r.Run.leave(ctx, p)
		}
		_, _ = r.Store.Client.Revoke(ctx, r.lease.id) // otherwise it expires
	}
}
