package registration

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/lease"
	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/internal/record"
)

// ErrOtherRun means that another run has begun under the job's name.
var ErrOtherRun = errors.New("another run of the job has begun")

// Run is the run of the job in which an agent is. Where an agent hosts the store it is the only
// one.
type Run struct {
	Keys     keys.Run         // in a store that no agent hosts unknown before it is found
	JobLease clientv3.LeaseID // of the keys of the job; all agents keep it alive

	store *kv.Store
	job   string
	name  keys.Job
	ttl   time.Duration // of JobLease
	next  run           // which this agent creates, without its ID and lease

	// In a store that no agent hosts; otherwise zero.
	lease  clientv3.LeaseID // of this agent
	self   record.Member
	value  string // of the key run, "" before it is known
	member bool   // this agent has joined
}

// run is the value of the key run. Its id is part of all other keys of the job, so that a later job
// of the same name does not read them.
type run struct {
	ID  string           `json:"id"`
	Job clientv3.LeaseID `json:"lease"`
	// how long workers may run after the store has answered their agent the last time, if another
	// attempt may follow theirs, and if none may; left out if there are no workers
	Leased record.Seconds `json:"leased_seconds,omitempty"`
	Final  record.Seconds `json:"final_seconds,omitempty"`
}

func newRun(store *kv.Store, c *Config) *Run {
	r := &Run{store: store, job: c.Job, name: keys.OfJob(c.Prefix, c.Job), ttl: c.JobTTL}
	r.Keys = r.name.Only()
	if c.Outlives > 0 {
		r.next.Final = record.Seconds(c.Outlives)
		r.next.Leased = record.Seconds(c.PeerTimeout + c.LostGrace + leasedMargin)
	}
	return r
}

// of says that the agent has a lease: no agent hosts the store.
func (r *Run) of(lease clientv3.LeaseID, self record.Member) { r.lease, r.self = lease, self }

// Find determines the run that this agent joins: where no agent hosts the store, the present one
// or, if that has ended, a new one. It reports whether it is another one than before.
func (r *Run) Find(ctx context.Context) (other bool, err error) {
	if r.lease == 0 {
		return false, nil
	}
	ctx, done := r.store.Until(ctx)
	defer done()
	present, err := r.find(ctx)
	if v, is := errors.AsType[*protocol.VersionError](err); is {
		return false, r.refuse(ctx, present, v)
	}
	if err == ErrOtherRun {
		return false, err
	}
	if err != nil {
		return false, fmt.Errorf("cannot find the run of job %q: %w", r.job, err)
	}
	found := r.name.Run(present.ID)
	if other = found != r.Keys; other {
		r.Keys, r.JobLease = found, present.Job
	}
	return other, nil
}

// find returns the present run of the job's name, or creates one if there is none, or if the one
// that this agent has tried is over.
func (r *Run) find(ctx context.Context) (run, error) {
	key, over := r.name.Present(), r.value
	get := []clientv3.Op{clientv3.OpGet(key)}
	found, err := r.store.Commit(ctx, nil, get, nil)
	if err != nil {
		return run{}, err
	}
	kvs := found.Responses[0].GetResponseRange().Kvs
	unchanged := kv.Absent(key)
	if len(kvs) > 0 {
		r.value = string(kvs[0].Value)
		if r.value != over {
			return decode[run](kvs[0].Value)
		}
		unchanged = clientv3.Compare(clientv3.Value(key), "=", over)
	}
	next := r.next
	next.ID = rand.Text()[:16]
	if next.Job, _, err = grant(ctx, r.store, r.job, r.ttl); err != nil {
		return run{}, err
	}
	r.value = record.Encode(next)
	put := clientv3.OpPut(key, r.value, clientv3.WithLease(next.Job))
	created, err := r.store.Commit(ctx, []clientv3.Cmp{unchanged}, []clientv3.Op{put}, get)
	if err != nil || created.Succeeded {
		return next, err
	}
	kvs = created.Responses[0].GetResponseRange().Kvs
	if len(kvs) > 0 && string(kvs[0].Value) == r.value {
		return next, nil // an earlier attempt succeeded, but its answer was lost
	}
	_, _ = r.store.Client.Revoke(ctx, next.Job) // otherwise it expires
	if len(kvs) == 0 {
		return run{}, ErrOtherRun
	}
	r.value = string(kvs[0].Value)
	return decode[run](kvs[0].Value)
}

// refuse returns why this agent cannot join a run of another version.
func (r *Run) refuse(ctx context.Context, other run, version *protocol.VersionError) error {
	r.Keys = r.name.Run(other.ID)
	agents, err := r.store.Get(ctx, string(r.Keys.Agents()), clientv3.WithFirstCreate()...)
	if err != nil {
		return err
	}
	return &OtherVersionError{hostOf(agents.Kvs), version}
}

// Present is the condition that no other run has begun.
func (r *Run) Present() []clientv3.Cmp {
	if r.lease == 0 {
		return nil
	}
	return []clientv3.Cmp{clientv3.Compare(clientv3.Value(r.name.Present()), "=", r.value)}
}

// Again lets Find return the same run again, although this agent has tried it: others may be in it.
func (r *Run) Again() { r.value = "" }

// Replaced tells whether the run is over or another one has begun, as far as that is known.
func (r *Run) Replaced(ctx context.Context) bool {
	found, err := r.store.Get(ctx, r.name.Present())
	if err != nil || len(found.Kvs) > 0 && string(found.Kvs[0].Value) == r.value {
		return false
	}
	r.Again()
	return true
}

// Agents is how many agents are in the run. One that was killed is until its lease expires.
func (r *Run) Agents(ctx context.Context) (int, error) {
	found, err := r.store.Get(ctx, string(r.Keys.Agents()), clientv3.WithPrefix(),
		clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return int(found.Count), nil
}

// FirstLease is the lease of the agent that has joined first of those that are in the run; 0 if
// none is.
func (r *Run) FirstLease(ctx context.Context) (clientv3.LeaseID, error) {
	found, err := r.store.Get(ctx, string(r.Keys.Agents()), clientv3.WithFirstCreate()...)
	if err != nil || len(found.Kvs) == 0 {
		return 0, err
	}
	return clientv3.LeaseID(found.Kvs[0].Lease), nil
}

// keepJobLease keeps the job's lease alive until ctx ends, or returns why it cannot. All agents do,
// because any of them may be the only one that is left.
func (r *Run) keepJobLease(ctx context.Context, storeTimeout time.Duration) error {
	limit := r.ttl + storeTimeout // the agent's own lease shows earlier that the store is silent
	err := lease.Keep(ctx, r.store.Client, r.JobLease, r.ttl, limit, func(time.Duration) {}, nil)
	return fmt.Errorf("cannot keep job %q: %v", r.job, err)
}

// leave removes this agent's key, and says why: the others cannot tell that from the end of its
// lease. If it was the last agent of a run that is over it removes the keys of that. One that is
// not over may have other agents, although it seems to have none: if the store has revoked their
// leases they are about to register again, see return.go.
func (r *Run) leave(ctx context.Context, p Parting) {
	if !r.member {
		return
	}
	agents, why := r.Keys.Agents(), record.Loss{Ended: p == Empty, Left: p >= Goodbye}
	ops := []clientv3.Op{
		clientv3.OpGet(string(agents), clientv3.WithPrefix(), clientv3.WithCountOnly()), // with itself
		clientv3.OpDelete(agents.Of(r.self.ID)),
	}
	put := clientv3.OpPut(r.Keys.Lost().Of(r.self.ID), record.Encode(why),
		clientv3.WithLease(r.JobLease))
	answer, err := kv.Commit(ctx, r.store.Client, nil, append(ops, put), nil)
	if err == nil && p == Over && answer.Responses[0].GetResponseRange().Count <= 1 {
		r.remove(ctx)
	}
}

// remove removes the run, unless it has an agent, with one request, because a slow store may not
// have time for more. No agent can join the run any more when its key run is gone. That of a later
// run stays.
func (r *Run) remove(ctx context.Context) {
	noAgents := kv.Absent(string(r.Keys.Agents())).WithPrefix()
	keys := clientv3.OpDelete(r.Keys.Prefix, clientv3.WithPrefix())
	all := []clientv3.Op{clientv3.OpDelete(r.name.Present()), keys}
	removed, err := kv.Commit(ctx, r.store.Client, append(r.Present(), noAgents), all, nil)
	if err == nil && !removed.Succeeded { // a later run has begun, or an agent has registered again
		removed, err = kv.Commit(
			ctx, r.store.Client, []clientv3.Cmp{noAgents}, []clientv3.Op{keys}, nil)
	}
	if err == nil && removed.Succeeded {
		_, _ = r.store.Client.Revoke(ctx, r.JobLease)
	}
}
