package rdzv

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

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
