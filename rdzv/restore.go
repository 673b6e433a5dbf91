package rdzv

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// latest is what another leader of this attempt has to know. Of the messages only the last one
// counts, see restart.Policy.
func (l *Leader) latest() latest {
	delay := max(0, time.Until(l.mayStartAt()))
	v := latest{l.config.Attempt, delay, l.began, slices.Clone(l.failures)}
	for i := range v.Failures[:max(0, len(v.Failures)-1)] {
		v.Failures[i].Message = ""
	}
	return v
}

// resume returns a leader that begins with the state that is in the store; nil if the job is over.
// before is the one that it replaces in this process, if there was one.
func resume(
	ctx context.Context, client *clientv3.Client, run runKeys, c LeaderConfig, t term, before *Leader,
) (*Leader, error) {
	found, events, stop, err := readAndWatch(ctx, client, run.prefix)
	if err != nil {
		return nil, err
	}
	values := valuesOf(found.Kvs)
	l, err := leaderOf(client, run, c, values)
	if err == nil && values[l.keys.settled()] != nil {
		stop()
		return nil, nil
	}
	if err == nil {
		l.term, l.events, l.cancel = t, events, stop
		if before != nil && before.keys == l.keys {
			l.startAt, l.clearAt = before.startAt, before.clearAt
		}
		err = l.restore(ctx, found.Kvs, values)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return l, nil
}

// leaderOf returns the leader of the present attempt, which has yet to restore its state.
func leaderOf(
	client *clientv3.Client, run runKeys, c LeaderConfig, values map[string][]byte,
) (*Leader, error) {
	value, later := values[run.latest()]
	if !later {
		return newLeader(client, run.ofAttempt(c.Attempt), c), nil
	}
	v, err := decode[latest](value)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", run.latest(), err)
	}
	c.Attempt, c.Waiting = v.Attempt, nil
	l := newLeader(client, run.ofAttempt(v.Attempt), c)
	l.previous, l.failures, l.began = run.ofAttempt(v.Attempt-1), v.Failures, v.Began
	l.startAt = time.Now().Add(v.Delay)
	return l, nil
}

func valuesOf(kvs []*mvccpb.KeyValue) map[string][]byte {
	values := make(map[string][]byte, len(kvs))
	for _, kv := range kvs {
		values[string(kv.Key)] = kv.Value
	}
	return values
}

// restore applies what is in the store: the members of this attempt or, before its world is agreed,
// those of the attempt before, then that some of them are gone, then the rest like events.
func (l *Leader) restore(
	ctx context.Context, kvs []*mvccpb.KeyValue, values map[string][]byte,
) error {
	if v, ended := values[l.keys.verdict()]; ended {
		if err := l.applyEvent(ctx, l.keys.verdict(), v); err != nil {
			return err
		}
	}
	world, agreed := values[l.keys.world()]
	err := error(nil)
	switch {
	case agreed:
		err = l.restoreWorld(world, kvs, values)
	case l.later():
		err = cmp.Or(l.restoreSeats(l.previous, kvs, values), l.forgetSeats(ctx, kvs))
	default:
		l.restoreKnown(values)
		err = l.forgetSeats(ctx, kvs)
	}
	if err != nil {
		return err
	}
	if err := l.markGone(ctx, values); err != nil {
		return err
	}
	if _, exists := values[l.previous.verdict()]; exists && agreed && l.later() {
		if err := l.forgetPrevious(ctx); err != nil {
			return err
		}
	}
	for _, m := range slices.Clone(l.joined) {
		if _, exists := values[l.keys.member(m.ID)]; agreed && !exists {
			if err := l.memberDeleted(ctx, m.ID); err != nil {
				return err
			}
		}
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

// restoreKnown makes the known members that are gone. They have not joined: their keys are gone
// too.
func (l *Leader) restoreKnown(values map[string][]byte) {
	for _, m := range l.term.known {
		if _, exists := values[l.keys.run.agent(m.ID)]; !exists && l.members[m.ID] == nil {
			l.addMember(&memberState{Member: m, away: true})
		}
	}
}

// restoreWorld restores what the world of this attempt consists of.
func (l *Leader) restoreWorld(
	value []byte, kvs []*mvccpb.KeyValue, values map[string][]byte,
) error {
	world, err := decode[World](value)
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", l.keys.world(), err)
	}
	// When this attempt began is not known: not before the job.
	l.began, l.agreed, l.complete = world.Began, world.Began, true
	if err := l.restoreSeats(l.keys, kvs, values); err != nil {
		return err
	}
	for _, m := range l.joined {
		l.excuseSpare(m)
	}
	return l.restoreExports(values, world.Agents)
}

// restoreSeats makes the members of those that have a seat in this attempt, or in the one before,
// which have yet to join this one. One that was refused is as if it were gone.
func (l *Leader) restoreSeats(of keys, kvs []*mvccpb.KeyValue, values map[string][]byte) error {
	end, err := l.endOf(of, values)
	if err != nil {
		return err
	}
	for _, kv := range kvs {
		id, isSeat := strings.CutPrefix(string(kv.Key), of.seat(""))
		if !isSeat {
			continue
		}
		seat, err := decode[seatValue](kv.Value)
		if err != nil {
			return fmt.Errorf("cannot read %q: %w", kv.Key, err)
		}
		m := Member{ID: id, Slots: seat.Slots}
		if seat.Agent != nil {
			m = *seat.Agent
		}
		if value, published := values[of.member(id)]; published {
			if m, err = decode[Member](value); err != nil {
				return fmt.Errorf("cannot read the member of agent %q: %w", id, err)
			}
		}
		away, ended := of != l.keys, id == end.By
		gone := l.hasLeft(id, values) || away && ended && (end.Withdrawn || end.LostAgent())
		if seat.Full || gone && (l.elastic() || seat.Spare) {
			l.gone[id] = true
			continue
		}
		l.addMember(&memberState{Member: m, seat: seat.Seat, peers: seat.Peers, away: away,
			withdrawn: ended && end.Withdrawn})
	}
	slices.SortStableFunc(l.joined, bySeat)
	return nil
}

// endOf is how that attempt has ended; zero if it has not.
func (l *Leader) endOf(of keys, values map[string][]byte) (v Verdict, err error) {
	if s, err := decode[settled](values[of.settled()]); err == nil && s.Cause != nil {
		return *s.Cause, nil
	}
	if value, ended := values[of.verdict()]; ended {
		if v, err = decode[Verdict](value); err != nil {
			err = fmt.Errorf("cannot read %q: %w", of.verdict(), err)
		}
	}
	return v, err
}

// forgetSeats deletes the seats that the leader before has written for a world that is not agreed:
// an agent may get none.
func (l *Leader) forgetSeats(ctx context.Context, kvs []*mvccpb.KeyValue) error {
	seats := l.keys.seat("")
	isSeat := func(kv *mvccpb.KeyValue) bool { return strings.HasPrefix(string(kv.Key), seats) }
	if !slices.ContainsFunc(kvs, isSeat) {
		return nil
	}
	return l.commit(ctx, nil, clientv3.OpDelete(seats, clientv3.WithPrefix()))
}

func (l *Leader) restoreExports(values map[string][]byte, agents int) error {
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
		l.unready = agents
	}
	return nil
}

// markGone handles that members are gone or are to leave, as if that happened now: first spares, so
// that none of these takes over a seat, then those that have left, those that are known, and last
// those that are to leave if the job goes on without them.
func (l *Leader) markGone(ctx context.Context, values map[string][]byte) error {
	place := func(m *memberState) int {
		switch {
		case m.seat.Spare:
			return 0
		case l.hasLeft(m.ID, values):
			return 1
		case l.leaves(m, values):
			return 4
		case slices.ContainsFunc(l.term.known, func(k Member) bool { return k.ID == m.ID }):
			return 2
		}
		return 3
	}
	all := slices.Clone(l.joined)
	slices.SortStableFunc(all, func(a, b *memberState) int { return cmp.Compare(place(a), place(b)) })
	for _, m := range all {
		_, exists := values[l.keys.run.agent(m.ID)]
		left, err := l.hasLeft(m.ID, values), error(nil)
		if m.withdrawn = m.withdrawn || left; !left && l.leaves(m, values) {
			err = l.withdraw(ctx, m.ID)
		}
		switch {
		case err != nil:
		case left:
			err = l.markLost(ctx, m.ID)
		case exists:
		case l.term.revokedRecently():
			l.miss(m.ID)
		default:
			var why *loss
			if why, err = l.declareLost(ctx, m.ID, 0); why != nil {
				err = l.lose(ctx, m.ID, *why)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leaves tells whether an agent without workers has asked in this attempt to leave the job.
func (l *Leader) leaves(m *memberState, values map[string][]byte) bool {
	o, err := decode[Outcome](values[l.keys.outcome(m.ID)])
	return err == nil && o.Withdrawn
}
