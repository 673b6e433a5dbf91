package questions

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/lease"
	"rdzv/rdzv/internal/record"
)

// The limits of Ask: until the question is in the store, for the answers, and until all of it has
// been removed from the store.
const (
	turnTimeout    = 3 * time.Second
	defaultWithin  = 2 * time.Second
	forgetTimeout  = time.Second
	leaseRemainder = 3 * time.Second // the store removes by itself what an agent that died has asked
)

// errSilent is why a question was not asked if the store has not done it in time.
var errSilent = fmt.Errorf("the store has not answered for %v", turnTimeout)

// Ask asks all agents that have joined, see Session.Ask of package rdzv.
func (a *Agent) Ask(ctx context.Context, q Question) (
	answers []Answer, missing []Peer, err error,
) {
	q.Within = cmp.Or(q.Within, defaultWithin)
	c := &asking{store: a.Store, keys: a.Keys, id: rand.Text()[:16], missing: map[string]bool{}}
	err = c.begin(ctx, q, a.Self)
	if err == nil {
		defer c.stop()
		err = c.collect(ctx, q.Within)
	}
	// A store that does not answer any more keeps back nothing of what was collected.
	ctx, cancel := context.WithTimeout(context.Background(), forgetTimeout)
	defer cancel()
	a.forget(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	missing = c.peers(ctx)
	slices.SortFunc(c.answers, func(x, y Answer) int { return x.compare(y.Peer) })
	slices.SortFunc(missing, Peer.compare)
	return c.answers, missing, nil
}

// forget removes the question and its answers, and what no agent needs any more from the store's
// history, which would grow with each question until the store is full.
func (a *Agent) forget(ctx context.Context, c *asking) {
	ctx, done := a.Store.Until(ctx)
	defer done()
	err := c.remove(ctx)
	if c.revision == 0 {
		return
	}
	old := a.asked.add(c.revision, time.Now(), a.Keep)
	if len(c.missing) == 0 && a.Agreed() {
		old = c.revision
	}
	if err == nil && old > 0 && a.Compacts {
		_, _ = a.Store.Client.Compact(ctx, old) // fails if it has been done for a later question
	}
}

// asking is one call of Ask.
type asking struct {
	store    *kv.Store
	keys     keys.Attempt
	id       string             // of the question
	lease    clientv3.LeaseID   // of the question and its answers; 0 is none yet
	revision int64              // of the store, with the question; 0 if it was not asked
	events   clientv3.WatchChan // of the answers
	stop     func()
	answers  []Answer
	missing  map[string]bool // IDs of the agents that have not answered
}

// begin puts the question when no other one is being answered.
func (a *asking) begin(ctx context.Context, q Question, self Peer) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, turnTimeout, errSilent)
	defer cancel()
	ctx, done := a.store.Until(ctx)
	defer done()
	if err := a.checkRoom(ctx); err != nil {
		return err
	}
	granted, err := kv.Again(ctx, func() (*clientv3.LeaseGrantResponse, error) {
		return a.store.Client.Grant(ctx, lease.Seconds(turnTimeout+q.Within+leaseRemainder))
	})
	if err != nil {
		return err
	}
	a.lease = granted.ID
	if err := a.listMembers(ctx); err != nil {
		return err
	}
	a.events, a.stop, err = kv.Watch(ctx, a.store.Client, string(a.keys.Answers(a.id)))
	if err != nil {
		return err
	}
	q.Limit = min(MaxAnswer, MaxAnswers/max(1, len(a.missing)))
	if err = a.put(ctx, ask{q, a.id, self, a.lease}); err != nil {
		a.stop()
	}
	return err
}

// checkRoom returns an error if the answers to this question, and what is written meanwhile, might
// fill the store. Answers to earlier questions stay in its history for some time.
func (a *asking) checkRoom(ctx context.Context) error {
	var s *pb.StatusResponse
	client := a.store.Client
	if conn := client.ActiveConnection(); conn != nil {
		s, _ = pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
	} else if own, err := client.Status(ctx, ""); err == nil { // of a store in this process
		s = (*pb.StatusResponse)(own)
	}
	if s.GetDbSizeQuota() > 0 && s.GetDbSizeInUse()+2*MaxAnswers > s.GetDbSizeQuota() {
		return fmt.Errorf("%d of the %d MB of the store are in use, perhaps by answers to earlier "+
			"questions, which it keeps for up to a minute", s.DbSizeInUse>>20, s.DbSizeQuota>>20)
	}
	return nil // also if that is not known
}

func (a *asking) listMembers(ctx context.Context) error {
	members := a.keys.Members()
	all, err := a.store.Get(ctx, string(members), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err == nil {
		for _, kv := range all.Kvs {
			a.missing[members.ID(string(kv.Key))] = true
		}
	}
	return err
}

// put puts the question, once: after a broken connection it may be there already. It waits while
// there is another one.
func (a *asking) put(ctx context.Context, question ask) error {
	key := a.keys.Question()
	put := clientv3.OpPut(key, record.Encode(question), clientv3.WithLease(a.lease))
	for {
		done, err := a.store.Commit(ctx, []clientv3.Cmp{kv.Absent(key)}, []clientv3.Op{put},
			[]clientv3.Op{clientv3.OpGet(key)})
		if err != nil {
			return err
		}
		if done.Succeeded {
			a.revision = done.Header.Revision
			return nil
		}
		there := done.Responses[0].GetResponseRange().Kvs[0]
		other, err := record.Decode[ask](there.Value)
		switch {
		case err != nil: // no agent has put it
			same := clientv3.Compare(clientv3.ModRevision(key), "=", there.ModRevision)
			_, err = a.store.Commit(ctx, []clientv3.Cmp{same}, []clientv3.Op{clientv3.OpDelete(key)}, nil)
		case other.ID == a.id:
			a.revision = there.ModRevision
			return nil
		default:
			_, err = kv.Await(ctx, a.store.Client, key, kv.IsGone)
		}
		if errors.Is(err, errSilent) {
			return &BusyError{other.Kind, other.Asker}
		}
		if err != nil {
			return err
		}
	}
}

// BusyError says that a question was not asked because another one was being answered all the time.
type BusyError struct {
	Kind  string // of the other one
	Asker Peer
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("another question (%s), from the agent on %s (pid %d), has been waiting for "+
		"its answers for %v", e.Kind, e.Asker.Host, e.Asker.PID, turnTimeout)
}

// collect reads the answers until all have answered, for a time.
func (a *asking) collect(ctx context.Context, within time.Duration) error {
	ctx, done := a.store.Until(ctx)
	defer done()
	over := time.NewTimer(within)
	defer over.Stop()
	for len(a.missing) > 0 {
		select {
		case response, open := <-a.events:
			if !open || response.Err() != nil {
				return cmp.Or(response.Err(), kv.ErrLost)
			}
			a.read(response.Events)
		case <-over.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (a *asking) read(events []*clientv3.Event) {
	for _, e := range events {
		by := a.keys.Answers(a.id).ID(string(e.Kv.Key))
		answer, err := record.Decode[Answer](e.Kv.Value)
		if err == nil && a.missing[by] {
			delete(a.missing, by)
			a.answers = append(a.answers, answer)
		}
	}
}

// remove removes the question and its answers.
func (a *asking) remove(ctx context.Context) error {
	if a.lease == 0 {
		return nil
	}
	_, err := kv.Again(ctx, func() (*clientv3.LeaseRevokeResponse, error) {
		return a.store.Client.Revoke(ctx, a.lease)
	})
	return err
}

// atOnce is of how many agents a transaction reads two keys: etcd allows 128.
const atOnce = 64

// peers reads who the missing agents are, as far as the store tells it before ctx ends.
func (a *asking) peers(ctx context.Context) (list []Peer) {
	for id := range a.missing {
		list = append(list, Peer{ID: id})
	}
	for some := range slices.Chunk(list, atOnce) {
		var gets []clientv3.Op
		for _, p := range some {
			gets = append(gets, clientv3.OpGet(a.keys.Members().Of(p.ID)),
				clientv3.OpGet(a.keys.Seats().Of(p.ID)))
		}
		found, err := a.store.Commit(ctx, nil, gets, nil)
		if err != nil {
			break
		}
		for i := range some {
			p := &some[i]
			for _, kv := range found.Responses[2*i].GetResponseRange().Kvs {
				m, _ := record.Decode[record.Member](kv.Value) // one that cannot be decoded ends the job
				p.Host, p.PID, p.Tasks = m.Host, m.PID, len(m.Tasks)
			}
			for _, kv := range found.Responses[2*i+1].GetResponseRange().Kvs {
				p.Seat, _ = record.Decode[record.Seat](kv.Value)
			}
		}
	}
	return list
}
