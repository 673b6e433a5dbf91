package rdzv

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/lease"
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
	job clientv3.LeaseID // the leader keeps it alive
}

// run is the value of the key run. Its id is part of all other keys of the job, so that a later job
// of the same name does not read them.
type run struct {
	ID  string           `json:"id"`
	Job clientv3.LeaseID `json:"lease"`
}

// leased is the registration of an agent by its lease, for all attempts.
type leased struct {
	*Session                    // of the first attempt
	name     jobKeys            // those of its run are below
	value    string             // of the key run, "" before it is known
	member   bool               // of that run
	before   []*mvccpb.KeyValue // the last agent that joined before this one, if there was one
	current  context.Context
	cancel   context.CancelFunc
	keeping  sync.WaitGroup
}

// errOtherRun means that another run has begun under the job's name.
var errOtherRun = errors.New("another run of the job has begun")

// joinLeased joins the job in a store without the presence service.
func (s *Session) joinLeased(ctx context.Context) error {
	s.config.PeerTimeout = cmp.Or(s.config.PeerTimeout, presence.DefaultTimeout)
	s.config.StoreTimeout = cmp.Or(s.config.StoreTimeout, s.config.PeerTimeout)
	switch {
	case s.config.Lead == nil || s.config.Lead.Agents < 1:
		return fmt.Errorf("cannot join job %q: no agent hosts this store, and Config.Lead, "+
			"with which this agent can lead the job, has no agents", s.config.Job)
	case s.config.Lead.Spares != 0 || s.config.Lead.Replaceable:
		return fmt.Errorf("cannot join job %q: no agent hosts this store, and in such a store no "+
			"agent takes the place of a lost one (Config.Lead)", s.config.Job)
	case s.config.Attempt != 0:
		return fmt.Errorf("cannot join attempt %d of job %q: no agent hosts this store, and the "+
			"attempt in such a store is that of the job", s.config.Attempt, s.config.Job)
	case s.config.PeerTimeout < presence.MinTimeout:
		return fmt.Errorf("cannot join job %q with peer timeout %v: the minimum is %v",
			s.config.Job, s.config.PeerTimeout, presence.MinTimeout)
	}
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	var err error
	if s.leases.own, err = s.grant(ctx, s.config.PeerTimeout); err != nil {
		return err
	}
	l := &leased{Session: s, name: jobKeysOf(cmp.Or(s.config.Prefix, DefaultPrefix), s.config.Job)}
	l.current, l.cancel = context.WithCancel(context.Background())
	s.registration = l
	l.keeping.Go(l.keep)
	for err = l.enter(ctx); err != nil; err = l.enter(ctx) {
		if err = l.mayTryAgain(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) grant(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error) {
	granted, err := again(ctx, func() (*clientv3.LeaseGrantResponse, error) {
		return s.client.Grant(ctx, lease.Seconds(ttl))
	})
	if err != nil {
		return 0, fmt.Errorf("cannot get a lease for job %q: %w", s.config.Job, err)
	}
	return granted.ID, nil
}

// keep keeps the agent's lease alive. Without it the others consider this agent lost.
func (l *leased) keep() {
	ttl, limit := l.config.PeerTimeout, l.config.StoreTimeout
	err := lease.Keep(l.current, l.client, l.leases.own, ttl, limit)
	if l.current.Err() == nil {
		l.vanish(fmt.Errorf("%w: %v", ErrStoreLost, err))
	}
}

// enter makes this agent a member of the present run, or of a new one if that has ended.
func (l *leased) enter(ctx context.Context) error {
	r, err := l.findRun(ctx)
	if err != nil {
		return fmt.Errorf("cannot find the run of job %q: %w", l.config.Job, err)
	}
	l.run, l.leases.job = l.name.ofRun(r.ID), r.Job
	l.keys = l.run.ofAttempt(0)
	follow, err := l.watchSignals(ctx)
	if err != nil {
		return err
	}
	found, err := l.putMember(ctx, []clientv3.Cmp{l.runs()},
		clientv3.OpGet(l.run.agents(), clientv3.WithLastCreate()...), l.putAgent())
	if err != nil {
		l.stopWatch()
		return l.orOtherRun(ctx, err)
	}
	if len(found) > 0 {
		l.before = found[0].GetResponseRange().Kvs
		l.leads.Store(len(l.before) == 0)
	}
	l.member = true
	l.wg.Go(follow)
	l.keeping.Go(l.campaign)
	return nil
}

// putAgent puts the key that exists from this agent's first attempt to its last.
func (l *leased) putAgent() clientv3.Op {
	m := l.config.Self
	who := Member{ID: m.ID, Host: m.Host, Node: m.Node, PID: m.PID, Rank: m.Rank,
		LocalRank: m.LocalRank, Slots: m.Slots} // for those who report its loss
	return clientv3.OpPut(l.run.agent(m.ID), encode(who), clientv3.WithLease(l.leases.own))
}

// isOver tells whether the run has a verdict after which there is no other attempt. While the
// leader has yet to decide on that, it is not.
func (l *leased) isOver(ctx context.Context) (bool, error) {
	found, err := l.get(ctx, l.run.latest())
	if err != nil {
		return false, err
	}
	k := l.keys
	if len(found.Kvs) > 0 {
		v, err := decode[latest](found.Kvs[0].Value)
		if err != nil {
			return false, fmt.Errorf("cannot read %q: %w", l.run.latest(), err)
		}
		k = l.run.ofAttempt(v.Attempt)
	}
	if found, err = l.get(ctx, k.signals(), clientv3.WithPrefix()); err != nil {
		return false, err
	}
	values := valuesOf(found.Kvs)
	verdict, ended := values[k.verdict()]
	if !ended {
		return false, nil
	}
	if value, decided := values[k.settled()]; decided {
		s, err := decode[settled](value)
		return err != nil || s.Restart == nil, nil
	}
	v, err := decode[Verdict](verdict)
	w, _ := decode[World](values[k.world()]) // without one no worker has failed
	return err != nil || !v.MayRestart() || w.Attempt >= w.MaxRestarts, nil
}

// runs is the condition that no other run has begun.
func (l *leased) runs() clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(l.name.run()), "=", l.value)
}

// orOtherRun returns errOtherRun if the run is over or another one has begun, otherwise why this
// agent cannot join, which is err or, between two attempts, ErrFull.
func (l *leased) orOtherRun(ctx context.Context, err error) error {
	if err == ErrClosed || err == ErrFull { // the latter in a later attempt too
		over, unknown := l.isOver(ctx)
		switch {
		case unknown != nil:
			return unknown
		case over:
			return errOtherRun
		}
		err = ErrFull
	}
	found, getErr := again(ctx, func() (*clientv3.GetResponse, error) {
		return l.client.Get(ctx, l.name.run())
	})
	if getErr == nil && (len(found.Kvs) == 0 || string(found.Kvs[0].Value) != l.value) {
		l.value = ""
		return errOtherRun
	}
	return err
}

// jobTTL is the TTL of the job's lease. A leader that is frozen has renewed it up to a third of the
// TTL before, and its own lease expires up to 1 s late: the successor must be in time.
func (l *leased) jobTTL() time.Duration { return 2*l.config.PeerTimeout + presence.MinTimeout }

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
			return decode[run](kvs[0].Value)
		}
		unchanged = clientv3.Compare(clientv3.Value(key), "=", over)
	}
	r := run{ID: rand.Text()[:16]}
	if r.Job, err = l.grant(ctx, l.jobTTL()); err != nil {
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
	return decode[run](kvs[0].Value)
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
