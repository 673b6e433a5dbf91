package rdzv

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/internal/registration"
)

// entry is the way of an agent that is registered into an attempt.
type entry struct {
	registration *registration.Registration
	config       Config
	session      *Session // of the attempt that it has tried last; nil if it has tried none

	returns bool // this agent was a member of the attempt before
	late    bool // it joins an attempt that runs, to wait for the next one
}

// try makes this agent a member of the attempt. If that has no place for it, it has read the
// signals.
func (e *entry) try(ctx context.Context) error {
	if !e.returns {
		other, err := e.registration.Run.Find(ctx)
		if err != nil {
			return err
		}
		if other {
			e.config.Attempt = 0
		}
	}
	s := newSession(e.registration, e.config)
	e.session, s.late = s, e.late
	ctx, done := s.life.store.Until(ctx)
	defer done()
	follow, err := s.signals.Watch(ctx)
	if err != nil {
		return fmt.Errorf("cannot watch job %q: %w", e.config.Job, err)
	}
	defer follow()
	err = e.putMember(ctx)
	if noPlace(err) || e.late { // they may have been written before the watch began
		err = cmp.Or(s.signals.ReadOnce(ctx), err)
	}
	return err
}

// putMember publishes the member, see putPlaced, and in this agent's first attempt that it is
// alive. The member stays when the agent is lost, so that a leader that is new learns of that.
func (e *entry) putMember(ctx context.Context) error {
	r := e.registration
	var joins []clientv3.Op
	if r.Elects() && !e.returns {
		last := clientv3.WithLastCreate()
		joins = append(joins, clientv3.OpGet(string(r.Run.Keys.Agents()), last...))
	}
	if !e.returns {
		joins = append(joins, r.PutAgent())
	}
	found, err := e.putPlaced(ctx, joins)
	if err != nil {
		return err
	}
	r.Own(append(e.place().occupy(r.Lease()), r.PutAgent()))
	if r.Elects() && !e.returns {
		r.Joined(append(found, nil)[0])
	}
	return nil
}

// putPlaced puts the member, unless this attempt does not take the agent, it must not share its
// host with one that joined before, it is lost, or another run has begun. It returns the results of
// first, which is executed before; nil if an earlier try succeeded, but its answer was lost.
func (e *entry) putPlaced(
	ctx context.Context, first []clientv3.Op,
) ([]*etcdserverpb.ResponseOp, error) {
	r, k, p, self := e.registration, e.session.keys, e.place(), e.config.Self
	var free []clientv3.Cmp
	var occupy []clientv3.Op
	if !e.returns {
		free, occupy = p.free(), p.occupy(r.Lease())
	}
	notLost := kv.Absent(r.Run.Keys.Lost().Of(self.ID))
	key, value := k.Members().Of(self.ID), record.Encode(self)
	answer, err := e.session.life.store.Commit(ctx,
		slices.Concat(r.Run.Present(), free, takesMember(k, e.config.Attempt, e.late),
			[]clientv3.Cmp{notLost}),
		slices.Concat(first, occupy,
			[]clientv3.Op{clientv3.OpPut(key, value, clientv3.WithLease(r.Run.JobLease))}),
		[]clientv3.Op{
			clientv3.OpGet(key, clientv3.WithCountOnly()),
			clientv3.OpGet(k.Verdict(), clientv3.WithCountOnly()),
			clientv3.OpGet(string(r.Run.Keys.Hosts(self.Node)), clientv3.WithPrefix()),
		})
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot join job %q: %w", e.config.Job, err)
	case answer.Succeeded:
		return answer.Responses[:len(first)], nil
	case answer.Responses[0].GetResponseRange().Count > 0:
		return nil, nil
	case answer.Responses[1].GetResponseRange().Count > 0:
		return nil, ErrClosed
	}
	occupants := (*clientv3.GetResponse)(answer.Responses[2].GetResponseRange())
	if other := p.neighbour(occupants); other != nil {
		return nil, other
	}
	return nil, ErrFull
}

func (e *entry) place() place { return place{e.config.Self, e.registration.Run.Keys} }

// close ends what the entry has begun, see Session.close.
func (e *entry) close(cause error, parting registration.Parting) {
	if e.session != nil {
		e.session.close(cause, parting)
		return
	}
	e.registration.Leave(parting)
	e.registration.Store.Lose(cause)
}
