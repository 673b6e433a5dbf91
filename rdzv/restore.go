package rdzv

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// latest is what another leader of this attempt has to know. Of the messages only the last one
// counts, see restart.Policy.
func (l *Leader) latest(delay time.Duration) latest {
	v := latest{l.config.Attempt, delay, l.began, slices.Clone(l.failures)}
	for i := range v.Failures[:max(0, len(v.Failures)-1)] {
		v.Failures[i].Message = ""
	}
	return v
}

// resume returns a leader that continues the job from the state that is in the store; nil if the
// job is over. before is the one that it replaces in this process, if there was one.
func (l *leased) resume(
	ctx context.Context, c candidate, known []Member, before *Leader,
) (*Leader, error) {
	found, events, stop, err := readAndWatch(ctx, l.client, l.run.prefix)
	if err != nil {
		return nil, err
	}
	values := valuesOf(found.Kvs)
	leader, err := l.leaderOf(values)
	if err == nil && values[leader.keys.settled()] != nil {
		stop()
		return nil, nil
	}
	if err == nil {
		leader.candidate, leader.lease = c, l.leases.job
		leader.events, leader.cancel = events, stop
		if before != nil && before.keys == leader.keys {
			leader.startAt = before.startAt
		}
		l.leads.Store(true)
		err = leader.restore(ctx, found.Kvs, values, known)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return leader, nil
}

// leaderOf returns the leader of the present attempt, which has yet to restore its state.
func (l *leased) leaderOf(values map[string][]byte) (*Leader, error) {
	config := *l.config.Lead
	config.Job, config.Attempt = l.config.Job, 0
	config.SettleTimeout = cmp.Or(config.SettleTimeout, l.config.SettleTimeout)
	var v latest
	if value, later := values[l.run.latest()]; later {
		var err error
		if v, err = decode[latest](value); err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", l.run.latest(), err)
		}
		config.Attempt, config.Waiting = v.Attempt, nil
	}
	leader := newLeader(l.client, l.run.ofAttempt(config.Attempt), config)
	leader.run = l.run
	if config.Attempt > 0 {
		leader.previous = l.run.ofAttempt(config.Attempt - 1)
		leader.failures, leader.began = v.Failures, v.Began
		leader.startAt = time.Now().Add(v.Delay)
	}
	return leader, nil
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
	world, agreed := values[l.keys.world()]
	err := error(nil)
	switch {
	case agreed:
		err = l.restoreWorld(world, kvs, values, known)
	case l.later():
		err = l.restoreSeats(l.previous, kvs, values, known)
	default:
		l.restoreLost(values, known)
	}
	if err != nil {
		return err
	}
	if err := l.endLost(ctx, known); err != nil {
		return err
	}
	if _, exists := values[l.previous.verdict()]; exists && agreed && l.later() {
		if err := l.forgetPrevious(ctx); err != nil {
			return err
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

// restoreLost makes the members that are gone.
func (l *Leader) restoreLost(values map[string][]byte, known []Member) {
	for _, m := range known {
		if _, exists := values[l.run.agent(m.ID)]; !exists && l.members[m.ID] == nil {
			l.addMember(&memberState{Member: m, lost: true})
		}
	}
}

// restoreWorld restores what the world of this attempt consists of.
func (l *Leader) restoreWorld(
	value []byte, kvs []*mvccpb.KeyValue, values map[string][]byte, known []Member,
) error {
	world, err := decode[World](value)
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", l.keys.world(), err)
	}
	l.began, l.complete = world.Began, true
	if err := l.restoreSeats(l.keys, kvs, values, known); err != nil {
		return err
	}
	return l.restoreExports(values)
}

// restoreSeats makes the members of those that have a seat in this attempt, or in the one before,
// which have yet to join this one. Whose agent is gone is lost.
func (l *Leader) restoreSeats(
	of keys, kvs []*mvccpb.KeyValue, values map[string][]byte, known []Member,
) error {
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
		value, published := values[of.member(id)]
		_, exists := values[l.run.agent(id)]
		if published {
			m, err = decode[Member](value)
		} else if i := indexOf(known, id); i >= 0 {
			m = known[i]
		}
		if err != nil {
			return fmt.Errorf("cannot read the member of agent %q: %w", id, err)
		}
		l.addMember(&memberState{
			Member: m, seat: seat.Seat, peers: seat.Peers, lost: !exists, away: of != l.keys,
		})
	}
	byRank := func(a, b *memberState) int { return cmp.Compare(a.seat.Rank, b.seat.Rank) }
	slices.SortFunc(l.joined, byRank)
	return nil
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
