package rdzv

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/internal/boottime"
	"rdzv/rdzv/internal/lease"
	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/presence"
)

// registration is how the store knows that this agent is connected: a stream of package presence
// where an agent hosts the store, a lease in any other store.
type registration interface {
	Leave(context.Context) // with a goodbye
	Abandon()              // without one: the agent is lost
}

// leases are those of the keys in a store that no agent hosts; they are zero where one does.
type leases struct {
	own clientv3.LeaseID // exists as long as this agent
	ttl time.Duration    // of own; a cluster with a long election timeout grants no short one
	job clientv3.LeaseID // all agents keep it alive
}

// run is the value of the key run. Its id is part of all other keys of the job, so that a later job
// of the same name does not read them.
type run struct {
	ID  string           `json:"id"`
	Job clientv3.LeaseID `json:"lease"`
}

// leased is the registration of an agent by its lease, for all attempts.
type leased struct {
	*Session                           // of the attempt that this agent joins first
	name     jobKeys                   // those of its run are below
	value    string                    // of the key run, "" before it is known
	member   bool                      // of that run
	last     atomic.Pointer[Session]   // of the attempt that this agent has joined last; nil if none
	revoked  atomic.Pointer[time.Time] // when the lease was revoked the last time; nil: never
	doubts   chan struct{}             // the key of this agent was deleted
	before   []*mvccpb.KeyValue        // the last agent that joined before this one, if there was one
	current  context.Context
	cancel   context.CancelFunc
	keeping  sync.WaitGroup
}

// errOtherRun means that another run has begun under the job's name.
var errOtherRun = errors.New("another run of the job has begun")

// joinLeased joins the job in a store without the presence service.
func (s *Session) joinLeased(ctx context.Context) (*Session, error) {
	s.config.PeerTimeout = cmp.Or(s.config.PeerTimeout, presence.DefaultTimeout)
	s.config.StoreTimeout = cmp.Or(s.config.StoreTimeout, s.config.PeerTimeout)
	if err := s.config.checkLeased(); err != nil {
		return s, err
	}
	if s.config.Lead.Restarts.Max > 0 { // its workers run that long without an answer
		s.config.PeerTimeout = max(s.config.PeerTimeout, s.config.StoreTimeout)
	}
	var err error
	granted := boottime.Now()
	if s.leases.own, s.leases.ttl, err = s.grant(ctx, s.config.PeerTimeout); err != nil {
		return s, err
	}
	s.renewed(granted + s.config.PeerTimeout)
	l := &leased{
		Session: s, doubts: make(chan struct{}, 1),
		name: jobKeysOf(cmp.Or(s.config.Prefix, DefaultPrefix), s.config.Job),
	}
	l.current, l.cancel = context.WithCancel(context.Background())
	s.registration = l
	l.keeping.Go(func() { l.keepLease(s) })
	for err = l.enter(ctx); err != nil; err = l.enter(ctx) {
		attempt, late, err := l.mayTryAgain(ctx, err)
		if err == nil {
			l.Session, err = l.inAttempt(attempt, l.config.Self, l.config.JoinBy)
		}
		if err != nil {
			return l.Session, err
		}
		l.late = late
	}
	return l.Session, nil
}

func (c *Config) checkLeased() error {
	switch {
	case c.Lead == nil || !c.Lead.valid():
		return fmt.Errorf("cannot join job %q: no agent hosts this store, and Config.Lead, "+
			"with which this agent can lead the job, has no agents or too many spares", c.Job)
	case c.Attempt != 0:
		return fmt.Errorf("cannot join attempt %d of job %q: no agent hosts this store, and the "+
			"attempt in such a store is that of the job", c.Attempt, c.Job)
	case c.PeerTimeout < presence.MinTimeout:
		return fmt.Errorf("cannot join job %q with peer timeout %v: the minimum is %v",
			c.Job, c.PeerTimeout, presence.MinTimeout)
	}
	return nil
}

// grant returns a new lease, and its TTL, which may be longer.
func (s *Session) grant(ctx context.Context, ttl time.Duration) (
	clientv3.LeaseID, time.Duration, error,
) {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	granted, err := again(ctx, func() (*clientv3.LeaseGrantResponse, error) {
		return s.client.Grant(ctx, lease.Seconds(ttl))
	})
	if err != nil {
		return 0, 0, fmt.Errorf("cannot get a lease for job %q: %w", s.config.Job, err)
	}
	return granted.ID, time.Duration(granted.TTL) * time.Second, nil
}

// keepLease keeps the agent's lease alive. Without it the others consider this agent lost. It asks
// for renewals as often as the peer timeout requires, also if the TTL is longer. s is the session
// that got the lease.
func (l *leased) keepLease(s *Session) {
	ttl, limit := s.config.PeerTimeout, s.config.StoreTimeout
	var err error
	for err == nil {
		err = lease.Keep(l.current, s.client, s.leases.own, ttl, limit, func(sent time.Duration) {
			s.renewed(sent + ttl)
		}, l.doubts)
		if err == lease.ErrRevoked && l.current.Err() == nil {
			err = l.registerAgain(s)
		}
	}
	if l.current.Err() == nil {
		s.vanish(fmt.Errorf("%w: %v", ErrStoreLost, err))
	}
}

// keepJobLease keeps the job's lease alive. All agents do, because any of them may be the only one
// that is left.
func (l *leased) keepJobLease() {
	ttl := l.jobTTL() // the agent's own lease shows earlier that the store is silent
	limit := ttl + l.config.StoreTimeout
	err := lease.Keep(l.current, l.client, l.leases.job, ttl, limit, func(time.Duration) {}, nil)
	if l.current.Err() == nil {
		l.vanish(fmt.Errorf("%w: cannot keep job %q: %v", ErrStoreLost, l.config.Job, err))
	}
}

// enter makes this agent a member of an attempt of the present run, or of the first one of a new
// run if that has ended.
func (l *leased) enter(ctx context.Context) error {
	ctx, done := l.untilStoreLost(ctx)
	defer done()
	r, err := l.findRun(ctx)
	if v, is := errors.AsType[*protocol.VersionError](err); is {
		return l.otherVersion(ctx, r, v)
	}
	if err != nil {
		return fmt.Errorf("cannot find the run of job %q: %w", l.config.Job, err)
	}
	if found := l.name.ofRun(r.ID); found != l.run {
		l.run, l.leases.job, l.config.Attempt = found, r.Job, 0
	}
	l.keys = l.run.ofAttempt(l.config.Attempt)
	follow, err := l.watchSignals(ctx)
	if err != nil {
		return err
	}
	defer l.wg.Go(follow)
	var found []*etcdserverpb.ResponseOp
	if err = l.prepare(ctx, []clientv3.Cmp{l.runs()}); err == nil {
		found, err = l.putMember(ctx, []clientv3.Cmp{l.runs()},
			clientv3.OpGet(l.run.agents(), clientv3.WithLastCreate()...), l.putAgent())
	}
	if noPlace(err) || l.late { // they may have been written before the watch began
		err = cmp.Or(l.readSignalsOnce(ctx), err)
	}
	if err != nil {
		return l.orOtherRun(ctx, err)
	}
	if len(found) > 0 {
		l.before = found[0].GetResponseRange().Kvs
		l.leads.Store(len(l.before) == 0)
	}
	l.member = true
	l.keeping.Go(l.watchOwn)
	l.keeping.Go(l.keepJobLease)
	l.keeping.Go(l.campaign)
	return nil
}

// putAgent puts the key that exists from this agent's first attempt to its last.
func (l *leased) putAgent() clientv3.Op {
	m := l.config.Self.identity() // for those who report its loss
	return clientv3.OpPut(l.run.agent(m.ID), encode(m), clientv3.WithLease(l.leases.own))
}

// runs is the condition that no other run has begun.
func (l *leased) runs() clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(l.name.run()), "=", l.value)
}

// jobTTL is the TTL of the job's lease, within which its keys go when all agents have been killed.
// It is so long that a leader of the cluster that was frozen for less than 20 s does not revoke
// it.
func (l *leased) jobTTL() time.Duration {
	return cmp.Or(l.config.jobTTL, 2*l.config.PeerTimeout+30*time.Second)
}

// findRun returns the present run of the job's name, or creates one if there is none, or if the one
// that this agent has tried is over.
func (l *leased) findRun(ctx context.Context) (run, error) {
	key, over := l.name.run(), l.value
	get := []clientv3.Op{clientv3.OpGet(key)}
	found, err := commit(ctx, l.client, nil, get, nil)
	if err != nil {
		return run{}, err
	}
	kvs := found.Responses[0].GetResponseRange().Kvs
	unchanged := absent(key)
	if len(kvs) > 0 {
		l.value = string(kvs[0].Value)
		if l.value != over {
			return decodeRun(kvs[0].Value)
		}
		unchanged = clientv3.Compare(clientv3.Value(key), "=", over)
	}
	r := run{ID: rand.Text()[:16]}
	if r.Job, _, err = l.grant(ctx, l.jobTTL()); err != nil {
		return run{}, err
	}
	l.value = encode(r)
	put := clientv3.OpPut(key, l.value, clientv3.WithLease(r.Job))
	created, err := commit(ctx, l.client, []clientv3.Cmp{unchanged}, []clientv3.Op{put}, get)
	if err != nil || created.Succeeded {
		return r, err
	}
	if kvs = created.Responses[0].GetResponseRange().Kvs; len(kvs) == 0 {
		return run{}, errOtherRun
	}
	if string(kvs[0].Value) == l.value { // an earlier attempt succeeded, but its answer was lost
		return r, nil
	}
	_, _ = l.client.Revoke(ctx, r.Job) // otherwise it expires
	l.value = string(kvs[0].Value)
	return decodeRun(kvs[0].Value)
}

// Leave removes this agent's keys, and those of the run if this is the last agent.
func (l *leased) Leave(ctx context.Context) {
	l.end()
	if l.member {
		answer, err := commit(ctx, l.client, nil, []clientv3.Op{
			clientv3.OpDelete(l.run.agent(l.config.Self.ID)),
			clientv3.OpGet(l.run.agents(), clientv3.WithPrefix(), clientv3.WithCountOnly()),
		}, nil)
		if err == nil && answer.Responses[1].GetResponseRange().Count == 0 {
			l.removeRun(ctx)
		}
	}
	_, _ = l.client.Revoke(ctx, l.leases.own) // otherwise it expires
}

// removeRun removes the run. No agent can join it any more when the key run is gone.
func (l *leased) removeRun(ctx context.Context) {
	forget := []clientv3.Op{clientv3.OpDelete(l.name.run())}
	if _, err := commit(ctx, l.client, []clientv3.Cmp{l.runs()}, forget, nil); err == nil {
		_, _ = l.client.Delete(ctx, l.run.prefix, clientv3.WithPrefix())
		_, _ = l.client.Revoke(ctx, l.leases.job)
	}
}

// abandonTimeout bounds the attempt to revoke the lease of an agent that has perhaps lost the
// store.
const abandonTimeout = time.Second

// Abandon removes this agent's keys, so that the leader considers it lost at once.
func (l *leased) Abandon() {
	l.end()
	ctx, cancel := context.WithTimeout(context.Background(), abandonTimeout)
	defer cancel()
	_, _ = l.client.Revoke(ctx, l.leases.own)
}

func (l *leased) end() {
	l.cancel()
	l.keeping.Wait()
}
