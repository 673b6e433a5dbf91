package rdzv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// errDeposed means that this agent's lease has expired, so that another agent leads.
var errDeposed = errors.New("this agent does not lead the job any more")

// candidate is an agent that leads the job, or will when all agents that joined before it are gone.
// One that is gone never returns.
type candidate struct {
	key      string // of the agent
	revision int64  // at which it was created
}

// stands is the condition that the agent is not gone.
func (c candidate) stands() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(c.key), "=", c.revision)
}

// commit executes a transaction of the leader. It returns errDeposed, without any change, if this
// agent is not the leader any more.
func (l *Leader) commit(ctx context.Context, ifs []clientv3.Cmp, then ...clientv3.Op) error {
	_, err := l.commitIf(ctx, ifs, then...)
	return err
}

// commitIf is commit, and tells whether the conditions were true.
func (l *Leader) commitIf(
	ctx context.Context, ifs []clientv3.Cmp, then ...clientv3.Op,
) (done bool, err error) {
	var otherwise []clientv3.Op
	if l.candidate.key != "" {
		ifs = append(ifs, l.candidate.stands())
		otherwise = append(otherwise, clientv3.OpGet(l.candidate.key, clientv3.WithKeysOnly()))
	}
	answer, err := commit(ctx, l.client, ifs, then, otherwise)
	if err != nil || answer.Succeeded || l.candidate.key == "" {
		return err == nil && answer.Succeeded, err
	}
	found := answer.Responses[0].GetResponseRange().Kvs
	if len(found) == 0 || found[0].CreateRevision != l.candidate.revision {
		return false, errDeposed
	}
	return false, nil
}

// put puts a value that exists as long as the job.
func (l *Leader) put(key, value string) clientv3.Op {
	return clientv3.OpPut(key, value, clientv3.WithLease(l.lease))
}

// campaign leads the job as soon as this agent is the first one, until it leaves.
func (l *leased) campaign() {
	err := errDeposed
	for errors.Is(err, errDeposed) && l.current.Err() == nil { // it may have registered again
		var c candidate
		var before []Member
		if c, before, err = l.awaitTurn(l.current); err == nil {
			err = l.lead(l.current, c, before)
			l.leads.Store(!errors.Is(err, errDeposed))
		}
	}
	if err != nil && l.current.Err() == nil {
		l.vanish(fmt.Errorf("%w: cannot lead job %q: %v", ErrStoreLost, l.config.Job, err))
	}
}

// awaitTurn waits until all agents that joined before this one are gone. It returns the last of
// them, if there was one.
func (l *leased) awaitTurn(ctx context.Context) (c candidate, before []Member, err error) {
	c.key = l.run.agent(l.config.Self.ID)
	kvs := l.before
	for l.before = nil; ; {
		if c.revision, err = l.awaitOwn(ctx, c.key); err != nil {
			return c, nil, err
		}
		if len(kvs) > 0 {
			m, _ := decode[Member](kvs[0].Value) // one that cannot be decoded ends the job
			m.ID = strings.TrimPrefix(string(kvs[0].Key), l.run.agents())
			before = []Member{m}
		}
		earlier, err := l.get(ctx, l.run.agents(),
			append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(c.revision-1))...)
		if err != nil || len(earlier.Kvs) == 0 {
			return c, before, err
		}
		kvs = earlier.Kvs
		err = l.awaitDeletion(ctx, string(kvs[0].Key), earlier.Header.Revision+1)
		if err == nil {
			err = l.awaitReturn(ctx)
		}
		if err != nil {
			return c, nil, err
		}
	}
}

func (s *Session) get(ctx context.Context, key string, opts ...clientv3.OpOption) (
	*clientv3.GetResponse, error,
) {
	return again(ctx, func() (*clientv3.GetResponse, error) { return s.client.Get(ctx, key, opts...) })
}

// awaitDeletion waits until a key is deleted, or until the store ends the watch.
func (l *leased) awaitDeletion(ctx context.Context, key string, revision int64) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	events := l.client.Watch(ctx, key, clientv3.WithRev(revision), clientv3.WithFilterPut())
	for response := range events {
		if response.Err() != nil || len(response.Events) > 0 {
			return nil
		}
	}
	return cmp.Or(context.Cause(ctx), ErrStoreLost)
}

// lead leads the job until all have settled and form no other attempt. When the store ends its
// watch it begins again. known are agents that were in the store.
func (l *leased) lead(ctx context.Context, c candidate, known []Member) error {
	leader, err := l.resume(ctx, c, known, nil)
	for err == nil && leader != nil {
		var next *Leader
		next, err = leader.runAttempt(ctx)
		if _, interrupted := errors.AsType[watchError](err); interrupted {
			for _, m := range leader.joined {
				known = append(known, m.Member)
			}
			if err = l.awaitReturn(ctx); err == nil {
				next, err = l.resume(ctx, c, known, leader)
			}
		}
		leader = next
	}
	return err
}
