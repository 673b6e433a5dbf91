package questions

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
)

// timeout is how long Ask waits for answers if ctx has no deadline, and forgetTimeout how much
// longer it takes at most.
const (
	timeout       = 2 * time.Second
	forgetTimeout = time.Second
)

// Ask asks all agents that have joined, see Session.Ask of package rdzv.
func (a *Agent) Ask(ctx context.Context, q Question) (
	answers []Answer, missing []Peer, err error,
) {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	c := &asking{store: a.Store, keys: a.Keys, id: rand.Text()[:16], missing: map[string]bool{}}
	err = c.collect(ctx, q, a.JobLease)
	ctx, cancel := context.WithTimeout(context.Background(), forgetTimeout)
	defer cancel()
	err = cmp.Or(err, a.forget(ctx, c))
	if err == nil {
		missing, err = c.peers(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(c.answers, func(x, y Answer) int { return x.compare(y.Peer) })
	slices.SortFunc(missing, Peer.compare)
	return c.answers, missing, nil
}

// forget removes the question and its answers, and what no agent needs any more from the store's
// history, which would grow with each question until the store is full.
func (a *Agent) forget(ctx context.Context, c *asking) error {
	err := c.remove(ctx)
	old := a.asked.add(c.revision, time.Now(), a.Keep)
	if len(c.missing) == 0 && a.Agreed() {
		old = c.revision
	}
	if err == nil && old > 0 && a.Compacts {
		ctx, done := a.Store.Until(ctx)
		defer done()
		_, _ = a.Store.Client.Compact(ctx, old) // fails if it has been done for a later question
	}
	return err
}

// asking is one call of Ask.
type asking struct {
	store    *kv.Store
	keys     keys.Attempt
	id       string // of the question
	revision int64  // of the store, with the question
	answers  []Answer
	missing  map[string]bool // IDs of the agents that have not answered
}

// collect puts the question and reads the answers until all have answered or the deadline of ctx.
func (a *asking) collect(ctx context.Context, q Question, lease clientv3.LeaseID) error {
	ctx, done := a.store.Until(ctx)
	defer done()
	if err := a.listMembers(ctx); err != nil {
		return err
	}
	events, stop, err := kv.Watch(ctx, a.store.Client, string(a.keys.Answers(a.id)))
	if err != nil {
		return err
	}
	defer stop()
	if err := a.put(ctx, q, lease); err != nil {
		return err
	}
	for len(a.missing) > 0 {
		select {
		case response, open := <-events:
			if !open || response.Err() != nil {
				return cmp.Or(response.Err(), kv.ErrLost)
			}
			a.read(response.Events)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil
			}
			return context.Cause(ctx)
		}
	}
	return nil
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

// put puts the question, once: after a broken connection it may be there already.
func (a *asking) put(ctx context.Context, q Question, lease clientv3.LeaseID) error {
	deadline, _ := ctx.Deadline()
	key, value := a.keys.Questions().Of(a.id), record.Encode(ask{q, time.Until(deadline)})
	done, err := a.store.Commit(ctx,
		[]clientv3.Cmp{kv.Absent(key)},
		[]clientv3.Op{clientv3.OpPut(key, value, clientv3.WithLease(lease))}, nil)
	if err == nil && done.Succeeded {
		a.revision = done.Header.Revision
	}
	return err
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

func (a *asking) remove(ctx context.Context) error {
	_, err := a.store.Commit(ctx, nil, []clientv3.Op{
		clientv3.OpDelete(a.keys.Questions().Of(a.id)),
		clientv3.OpDelete(string(a.keys.Answers(a.id)), clientv3.WithPrefix()),
	}, nil)
	return err
}

// peers reads who the missing agents are.
func (a *asking) peers(ctx context.Context) (list []Peer, err error) {
	for id := range a.missing {
		answer, err := a.store.Commit(ctx, nil, []clientv3.Op{
			clientv3.OpGet(a.keys.Members().Of(id)), clientv3.OpGet(a.keys.Seats().Of(id)),
		}, nil)
		if err != nil {
			return nil, err
		}
		p := Peer{ID: id}
		for _, kv := range answer.Responses[0].GetResponseRange().Kvs {
			m, _ := record.Decode[record.Member](kv.Value) // one that cannot be decoded ends the job
			p.Host, p.PID, p.Tasks = m.Host, m.PID, len(m.Tasks)
		}
		for _, kv := range answer.Responses[1].GetResponseRange().Kvs {
			p.Seat, _ = record.Decode[record.Seat](kv.Value)
		}
		list = append(list, p)
	}
	return list, nil
}
