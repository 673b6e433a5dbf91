package rdzv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/lease"
)

// errDeposed means that this agent's lease has expired, so that another agent leads.
var errDeposed = errors.New("this agent does not lead the job any more")

// candidate is a member that leads the job, or will when all members that joined before it are
// gone. A member that is gone never returns.
type candidate struct {
	key      string // of the member
	revision int64  // at which it was created
}

// stands is the condition that the member is not gone.
func (c candidate) stands() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(c.key), "=", c.revision)
}

// commit executes a transaction of the leader. It returns errDeposed, without any change, if this
// agent is not the leader any more.
func (l *Leader) commit(ctx context.Context, ifs []clientv3.Cmp, then ...clientv3.Op) error {
	var otherwise []clientv3.Op
	if l.candidate.key != "" {
		ifs = append(ifs, l.candidate.stands())
		otherwise = append(otherwise, clientv3.OpGet(l.candidate.key, clientv3.WithKeysOnly()))
	}
	answer, err := commit(ctx, l.client, ifs, then, otherwise)
	if err != nil || answer.Succeeded || l.candidate.key == "" {
		return err
	}
	found := answer.Responses[0].GetResponseRange().Kvs
	if len(found) == 0 || found[0].CreateRevision != l.candidate.revision {
		return errDeposed
	}
	return nil
}

// put puts a value that exists as long as the job.
func (l *Leader) put(key, value string) clientv3.Op {
	return clientv3.OpPut(key, value, clientv3.WithLease(l.lease))
}

// campaign leads the job as soon as this agent is the first one, until it leaves.
func (l *leased) campaign() {
	c, before, err := l.awaitTurn(l.current)
	if err == nil {
		err = l.lead(l.current, c, before)
	}
	if !errors.Is(err, lease.ErrSilent) { // which has nothing to do with leading
		err = fmt.Errorf("cannot lead job %q: %w", l.config.Job, err)
	}
	if l.current.Err() == nil {
		l.loseStore(fmt.Errorf("%w: %v", ErrStoreLost, err))
	}
}

// awaitTurn waits until all members that joined before this one are gone. It returns the last of
// them, if there was one.
func (l *leased) awaitTurn(ctx context.Context) (c candidate, before []Member, err error) {
	c.key = l.keys.member(l.config.Self.ID)
	own, err := l.get(ctx, c.key)
	if err != nil {
		return c, nil, err
	}
	if len(own.Kvs) == 0 {
		return c, nil, errDeposed
	}
	c.revision = own.Kvs[0].CreateRevision
	for kvs := l.before; ; {
		if len(kvs) > 0 {
			m, _ := decode[Member](kvs[0].Value) // one that cannot be decoded ends the job
			m.ID = strings.TrimPrefix(string(kvs[0].Key), l.keys.members())
			before = []Member{m}
		}
		earlier, err := l.get(ctx, l.keys.members(),
			append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(c.revision-1))...)
		if err != nil || len(earlier.Kvs) == 0 {
			return c, before, err
		}
		kvs = earlier.Kvs
		err = l.awaitDeletion(ctx, string(kvs[0].Key), earlier.Header.Revision+1)
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

// lead leads the job until all have settled, and then keeps its keys until ctx ends. When the store
// ends its watch it begins again. known are members that were in the store.
func (l *leased) lead(ctx context.Context, c candidate, known []Member) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer cancel(nil)
	keeping.Go(func() {
		ttl := l.jobTTL() // the agent's own lease shows earlier that the store is silent
		cancel(lease.Keep(ctx, l.client, l.leases.job, ttl, ttl+l.config.StoreTimeout))
	})
	config := *l.config.Lead
	config.Job, config.Attempt = l.config.Job, l.config.Attempt
	config.SettleTimeout = cmp.Or(config.SettleTimeout, l.config.SettleTimeout)
	for {
		leader := newLeader(l.client, l.keys, config)
		leader.candidate, leader.lease = c, l.leases.job
		leader.leads = func() { l.leads.Store(true) }
		err := leader.continueRun(ctx, known)
		if err == nil {
			break
		}
		if _, interrupted := errors.AsType[watchError](err); !interrupted {
			return err
		}
		known = append(known, leader.allMembers()...)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// continueRun leads the job from the state that is in the store.
func (l *Leader) continueRun(ctx context.Context, known []Member) error {
	found, events, stop, err := readAndWatch(ctx, l.client, l.keys.prefix)
	if err != nil {
		return err
	}
	l.events, l.cancel = events, stop
	values := valuesOf(found.Kvs)
	if _, over := values[l.keys.settled()]; over {
		l.cancel()
		return nil
	}
	l.leads()
	if err := l.restore(ctx, found.Kvs, values, known); err != nil {
		l.cancel()
		return err
	}
	return l.Run(ctx)
}

func valuesOf(kvs []*mvccpb.KeyValue) map[string][]byte {
	values := make(map[string][]byte, len(kvs))
	for _, kv := range kvs {
		values[string(kv.Key)] = kv.Value
	}
	return values
}

// restore applies what is in the store. Of what precedes the world only the members count: if one
// that is known is gone, the agent is lost, and the job ends.
func (l *Leader) restore(
	ctx context.Context, kvs []*mvccpb.KeyValue, values map[string][]byte, known []Member,
) error {
	if v, ended := values[l.keys.verdict()]; ended {
		if err := l.applyEvent(ctx, l.keys.verdict(), v); err != nil {
			return err
		}
	}
	_, agreed := values[l.keys.world()]
	if agreed {
		if err := l.restoreSeats(kvs, values, known); err != nil {
			return err
		}
	} else {
		l.restoreLost(values, known)
	}
	if err := l.endLost(ctx, known); err != nil {
		return err
	}
	_, started := values[l.keys.start()]
	for _, kv := range kvs {
		if started && strings.HasPrefix(string(kv.Key), l.keys.readies()) {
			continue
		}
		if err := l.applyEvent(ctx, string(kv.Key), kv.Value); err != nil {
			return err
		}
	}
	return nil
}

// restoreLost makes the members that are gone.
func (l *Leader) restoreLost(values map[string][]byte, known []Member) {
	for _, m := range known {
		if _, exists := values[l.keys.member(m.ID)]; !exists && l.members[m.ID] == nil {
			l.addMember(&memberState{Member: m, lost: true})
		}
	}
}

// restoreSeats makes the members of those that have a seat. Whose key is gone is lost.
func (l *Leader) restoreSeats(
	kvs []*mvccpb.KeyValue, values map[string][]byte, known []Member,
) error {
	for _, kv := range kvs {
		id, isSeat := strings.CutPrefix(string(kv.Key), l.keys.seat(""))
		if !isSeat {
			continue
		}
		seat, err := decode[seatValue](kv.Value)
		if err != nil {
			return fmt.Errorf("cannot read %q: %w", kv.Key, err)
		}
		m := Member{ID: id, Slots: seat.Slots}
		value, exists := values[l.keys.member(id)]
		if exists {
			m, err = decode[Member](value)
		} else if i := indexOf(known, id); i >= 0 {
			m = known[i]
		}
		if err != nil {
			return fmt.Errorf("cannot read the member of agent %q: %w", id, err)
		}
		l.addMember(&memberState{Member: m, seat: seat.Seat, peers: seat.Peers, lost: !exists})
	}
	byRank := func(a, b *memberState) int { return cmp.Compare(a.seat.Rank, b.seat.Rank) }
	slices.SortFunc(l.joined, byRank)
	l.complete = true
	return l.restoreExports(values)
}

func (l *Leader) restoreExports(values map[string][]byte) error {
	value, exist := values[l.keys.exports()]
	if !exist {
		return nil
	}
	exports, err := decode[Exports](value)
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", l.keys.exports(), err)
	}
	l.exports = &exports
	if _, started := values[l.keys.start()]; exports.Confirm && !started {
		l.unready = len(l.joined)
	}
	return nil
}

// endLost ends the job because of an agent that is lost and had not settled, first because of one
// that is known.
func (l *Leader) endLost(ctx context.Context, known []Member) error {
	lost := slices.DeleteFunc(slices.Clone(l.joined), func(m *memberState) bool { return !m.lost })
	place := func(m *memberState) uint { return uint(indexOf(known, m.ID)) } // -1 is the last
	slices.SortStableFunc(lost, func(a, b *memberState) int { return cmp.Compare(place(a), place(b)) })
	for _, m := range lost {
		if err := l.writeVerdict(ctx, l.lossOf(m), l.keys.outcome(m.ID)); err != nil {
			return err
		}
	}
	return nil
}

func indexOf(members []Member, id string) int {
	return slices.IndexFunc(members, func(m Member) bool { return m.ID == id })
}
