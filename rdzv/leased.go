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

// leased is the registration of an agent by its lease.
type leased struct {
	*Session
	name    keys               // of the job's name: those of its run are below
	run     string             // value of the key run, "" before it is known
	member  bool               // of that run
	before  []*mvccpb.KeyValue // the last member before this one, if there was one
	current context.Context
	cancel  context.CancelFunc
	keeping sync.WaitGroup
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
	case s.config.Lead.Restarts.Max != 0:
		return fmt.Errorf("cannot join job %q: no agent hosts this store, and in such a store "+
			"the workers cannot be restarted (Config.Lead.Restarts)", s.config.Job)
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
	l := &leased{Session: s, name: s.keys}
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
		l.loseStore(fmt.Errorf("%w: %v", ErrStoreLost, err))
	}
}

// enter makes this agent a member of the present run, or of a new one if that has ended.
func (l *leased) enter(ctx context.Context) error {
	r, err := l.findRun(ctx)
	if err != nil {
		return fmt.Errorf("cannot find the run of job %q: %w", l.config.Job, err)
	}
	l.keys, l.leases.job = l.name.ofRun(r.ID), r.Job
	var stopWatch context.CancelFunc
	events, err := again(ctx, func() (events clientv3.WatchChan, err error) {
		events, stopWatch, err = watch(ctx, l.client, l.keys.signals())
		return events, err
	})
	if err != nil {
		return fmt.Errorf("cannot watch job %q: %w", l.config.Job, err)
	}
	found, err := l.putMember(ctx, []clientv3.Cmp{l.runs()},
		clientv3.OpGet(l.keys.members(), clientv3.WithLastCreate()...))
	if err != nil {
		stopWatch()
		return l.orOtherRun(ctx, err)
	}
	if len(found) > 0 {
		l.before = found[0].GetResponseRange().Kvs
		l.leads.Store(len(l.before) == 0)
	}
	watching, cancel := context.WithCancel(context.Background())
	context.AfterFunc(watching, stopWatch)
	l.stopWatch, l.member = cancel, true
	l.wg.Go(func() { l.followSignals(watching, events) })
	l.keeping.Go(l.campaign)
	return nil
}

// followSignals applies the signals until ctx ends. If the store ends the watch, it reads them
// again.
func (l *leased) followSignals(ctx context.Context, events clientv3.WatchChan) {
	seen, err := l.applySignals(events)
	for err != nil {
		if events, err = l.readSignals(ctx, &seen); err != nil {
			break
		}
		var last int64
		last, err = l.applySignals(events)
		seen = max(seen, last)
	}
	l.loseWatch(err)
}

// readSignals applies the signals later than seen and watches those to come.
func (l *leased) readSignals(ctx context.Context, seen *int64) (clientv3.WatchChan, error) {
	found, events, stop, err := readAndWatch(ctx, l.client, l.keys.signals())
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, stop)
	for _, kv := range found.Kvs {
		if kv.ModRevision > *seen {
			if err := l.applySignal(&clientv3.Event{Kv: kv}); err != nil {
				l.Session.cancel(err)
			}
		}
	}
	*seen = found.Header.Revision
	return events, nil
}

// runs is the condition that no other run has begun.
func (l *leased) runs() clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(l.name.run()), "=", l.run)
}

// orOtherRun returns errOtherRun if the run is over or another one has begun, otherwise err.
func (l *leased) orOtherRun(ctx context.Context, err error) error {
	if err == ErrClosed {
		return errOtherRun
	}
	found, getErr := again(ctx, func() (*clientv3.GetResponse, error) {
		return l.client.Get(ctx, l.name.run())
	})
	if getErr == nil && (len(found.Kvs) == 0 || string(found.Kvs[0].Value) != l.run) {
		l.run = ""
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
	key, over := l.name.run(), l.run
	get := []clientv3.Op{clientv3.OpGet(key)}
	found, err := commit(ctx, l.client, nil, get, nil)
	if err != nil {
		return run{}, err
	}
	kvs := found.Responses[0].GetResponseRange().Kvs
	unchanged := absent(key)
	if len(kvs) > 0 {
		l.run = string(kvs[0].Value)
		if l.run != over {
			return decode[run](kvs[0].Value)
		}
		unchanged = clientv3.Compare(clientv3.Value(key), "=", over)
	}
	r := run{ID: rand.Text()[:16]}
	if r.Job, err = l.grant(ctx, l.jobTTL()); err != nil {
		return run{}, err
	}
	l.run = encode(r)
	put := clientv3.OpPut(key, l.run, clientv3.WithLease(r.Job))
	created, err := commit(ctx, l.client, []clientv3.Cmp{unchanged}, []clientv3.Op{put}, get)
	if err != nil || created.Succeeded {
		return r, err
	}
	if kvs = created.Responses[0].GetResponseRange().Kvs; len(kvs) == 0 {
		return run{}, errOtherRun
	}
	if string(kvs[0].Value) == l.run { // an earlier attempt succeeded, but its answer was lost
		return r, nil
	}
	_, _ = l.client.Revoke(ctx, r.Job) // otherwise it expires
	l.run = string(kvs[0].Value)
	return decode[run](kvs[0].Value)
}

// Leave removes this agent's keys, and those of the run if this is the last agent.
func (l *leased) Leave(ctx context.Context) {
	l.end()
	if l.member {
		answer, err := commit(ctx, l.client, nil, []clientv3.Op{
			clientv3.OpDelete(l.keys.member(l.config.Self.ID)),
			clientv3.OpGet(l.keys.members(), clientv3.WithPrefix(), clientv3.WithCountOnly()),
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
		_, _ = l.client.Delete(ctx, l.keys.prefix, clientv3.WithPrefix())
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
