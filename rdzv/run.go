package rdzv

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/protocol"
)

// run is the value of the key run, in a store that no agent hosts. Its id is part of all other keys
// of the job, so that a later job of the same name does not read them.
type run struct {
	ID  string           `json:"id"`
	Job clientv3.LeaseID `json:"lease"`
}

// errOtherRun means that another run has begun under the job's name.
var errOtherRun = errors.New("another run of the job has begun")

// enterRun determines the run that this agent joins: where no agent hosts the store, the present
// one or, if that has ended, a new one, of which it joins the first attempt.
func (s *Session) enterRun(ctx context.Context) error {
	r := s.registration
	if !r.elects || s.returns {
		return nil
	}
	present, err := s.findRun(ctx)
	if v, is := errors.AsType[*protocol.VersionError](err); is {
		return s.otherVersion(ctx, present, v)
	}
	if err != nil {
		return fmt.Errorf("cannot find the run of job %q: %w", s.config.Job, err)
	}
	if found := r.name.ofRun(present.ID); found != r.run {
		r.run, r.jobLease = found, present.Job
		s.config.Attempt, s.announced = 0, false
	}
	s.keys = r.run.ofAttempt(s.config.Attempt)
	return nil
}

// findRun returns the present run of the job's name, or creates one if there is none, or if the one
// that this agent has tried is over.
func (s *Session) findRun(ctx context.Context) (run, error) {
	r := s.registration
	key, over := r.name.run(), r.value
	get := []clientv3.Op{clientv3.OpGet(key)}
	found, err := commit(ctx, s.client, nil, get, nil)
	if err != nil {
		return run{}, err
	}
	kvs := found.Responses[0].GetResponseRange().Kvs
	unchanged := absent(key)
	if len(kvs) > 0 {
		r.value = string(kvs[0].Value)
		if r.value != over {
			return decodeRun(kvs[0].Value)
		}
		unchanged = clientv3.Compare(clientv3.Value(key), "=", over)
	}
	next := run{ID: rand.Text()[:16]}
	if next.Job, _, err = s.grant(ctx, r.jobTTL()); err != nil {
		return run{}, err
	}
	r.value = encode(next)
	put := clientv3.OpPut(key, r.value, clientv3.WithLease(next.Job))
	created, err := commit(ctx, s.client, []clientv3.Cmp{unchanged}, []clientv3.Op{put}, get)
	if err != nil || created.Succeeded {
		return next, err
	}
	if kvs = created.Responses[0].GetResponseRange().Kvs; len(kvs) == 0 {
		return run{}, errOtherRun
	}
	if string(kvs[0].Value) == r.value { // an earlier attempt succeeded, but its answer was lost
		return next, nil
	}
	_, _ = s.client.Revoke(ctx, next.Job) // otherwise it expires
	r.value = string(kvs[0].Value)
	return decodeRun(kvs[0].Value)
}

// joined begins what an agent of a run does until it leaves. last is the answer to which agent
// joined before it.
func (r *registration) joined(last *etcdserverpb.ResponseOp) {
	r.before = last.GetResponseRange().GetKvs()
	r.leads.Store(last != nil && len(r.before) == 0)
	r.member = true
	r.keeping.Go(r.watchOwn)
	r.keeping.Go(r.keepJobLease)
	r.keeping.Go(r.campaign)
}

// runs is the condition that no other run has begun.
func (r *registration) runs() []clientv3.Cmp {
	if !r.elects {
		return nil
	}
	return []clientv3.Cmp{clientv3.Compare(clientv3.Value(r.name.run()), "=", r.value)}
}

// jobTTL is the TTL of the job's lease, within which its keys go when all agents have been killed.
// It is so long that a leader of the cluster that was frozen for less than 20 s does not revoke
// it.
func (r *registration) jobTTL() time.Duration {
	return cmp.Or(r.config.jobTTL, 2*r.config.PeerTimeout+30*time.Second)
}

// leaveRun removes this agent's keys. After a goodbye it removes those of the run too, if this was
// the last agent.
func (r *registration) leaveRun(ctx context.Context, goodbye bool) {
	if goodbye && r.member {
		answer, err := commit(ctx, r.client, nil, []clientv3.Op{
			clientv3.OpDelete(r.run.agent(r.config.Self.ID)),
			clientv3.OpGet(r.run.agents(), clientv3.WithPrefix(), clientv3.WithCountOnly()),
		}, nil)
		if err == nil && answer.Responses[1].GetResponseRange().Count == 0 {
			r.removeRun(ctx)
		}
	}
	_, _ = r.client.Revoke(ctx, r.lease) // otherwise it expires
}

// removeRun removes the run. No agent can join it any more when the key run is gone.
func (r *registration) removeRun(ctx context.Context) {
	forget := []clientv3.Op{clientv3.OpDelete(r.name.run())}
	if _, err := commit(ctx, r.client, r.runs(), forget, nil); err == nil {
		_, _ = r.client.Delete(ctx, r.run.prefix, clientv3.WithPrefix())
		_, _ = r.client.Revoke(ctx, r.jobLease)
	}
}
