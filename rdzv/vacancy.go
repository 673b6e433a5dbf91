package rdzv

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Replaced is an agent that has taken over the seat of another one, which is lost.
type Replaced struct {
	Ranks string `json:"ranks"` // as in NodeRanks
	Host  string `json:"host"`  // where they run now
	Lost  string `json:"lost"`  // the host of the agent that is lost; it may be the same
}

// vacant tells whether the agent is lost and nobody has taken over its seat yet.
func (m *memberState) vacant() bool { return m.lost && m.away }

// ranks are the host and the ranks of an agent that has a seat.
func (m *memberState) ranks() NodeRanks {
	ranks := make([]int, m.seat.Slots)
	for i := range ranks {
		ranks[i] = m.seat.Rank + i
	}
	return NodeRanks{m.Host, ranges(ranks)}
}

// mayReplace tells whether another agent may take over the seat of this one, if that is lost: only
// if it runs all workers of its node. Nobody need replace a spare.
func (l *Leader) mayReplace(m *memberState) bool {
	return m.seat.Spare ||
		m.seat.Slots == m.seat.LocalSize && (l.config.Replaceable || l.spare() != nil)
}

// mayGoOn tells whether others may take the place of all agents that are lost, and those that are
// not have settled.
func (l *Leader) mayGoOn() bool {
	vacant, spares := 0, 0
	for _, m := range l.joined {
		switch {
		case m.seat.Spare && !m.lost:
			spares++
		case m.seat.Spare, m.lost && l.elastic():
		case m.lost && m.seat.Slots == m.seat.LocalSize:
			vacant++
		case m.lost, !m.settled:
			return false
		}
	}
	if l.elastic() {
		return l.complete && l.enoughMayJoin()
	}
	return l.complete && (vacant <= spares || l.config.Replaceable)
}

// vacate makes the seat of an agent vacant that is lost before the workers of a later attempt have
// started, or gives it to a spare.
func (l *Leader) vacate(ctx context.Context, m *memberState) error {
	m.lost = true
	l.pending--
	switch spare := l.spare(); {
	case m.seat.Spare:
		l.warn(l.spareLost(m))
	case spare != nil:
		l.warn(fmt.Errorf("%w; %s takes its place", m.loss(), spare.Host))
	default:
		l.warn(fmt.Errorf("%w; waiting for an agent in place of %s (restart %d of %d)", m.loss(), m.Host,
			l.config.Attempt, l.config.Restarts.Max))
	}
	if !m.away {
		m.away = true
		l.here--
	}
	l.seatSpares()
	for _, m := range l.unseated {
		if l.members[m.ID] == nil && !l.gone[m.ID] && l.fill(m) != nil {
			l.here++
			l.limitJoin(m.JoinWithin)
		}
	}
	return l.start(ctx)
}

// vacancies are the seats that nobody has taken over.
func (l *Leader) vacancies() (all []NodeRanks) {
	for _, m := range l.joined {
		if m.vacant() {
			all = append(all, m.ranks())
		}
	}
	return all
}

// fill gives a vacant seat to an agent that joins, if there is one for it: that of its node rank
// or, without one, that of its node or else any. It returns nil if there is none. A node has one
// agent.
func (l *Leader) fill(m Member) *memberState {
	at := -1
	for i, other := range l.joined {
		sameNode := m.Node != "" && m.Node == other.Node
		switch {
		case sameNode && !other.vacant():
			return nil
		case !other.vacant(), m.NodeRank != other.NodeRank:
		case at < 0 || sameNode:
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	lost := l.joined[at]
	if m.Slots != lost.seat.Slots {
		l.warn(fmt.Errorf("the agent on %s cannot take over the ranks of %s: it runs %d workers, not %d",
			address(m), lost.Host, m.Slots, lost.seat.Slots))
		return nil
	}
	state := &memberState{Member: m, seat: lost.seat, replaces: cmp.Or(lost.replaces, lost.Host)}
	l.joined[at], l.members[m.ID] = state, state
	l.pending++
	return state
}

// replaced are those that have taken over a seat in this attempt.
func (l *Leader) replaced() (all []Replaced) {
	for _, m := range l.joined {
		if m.replaces != "" {
			all = append(all, Replaced{m.ranks().Ranks, m.Host, m.replaces})
		}
	}
	return all
}

// vacantTooLong is the verdict when nobody has taken over the seat of an agent in time; nil if
// there is no such seat.
func (l *Leader) vacantTooLong() *Verdict {
	for _, m := range l.joined {
		if m.vacant() {
			v := m.lostVerdict()
			v.Text = fmt.Sprintf("lost %s, and no other agent took its place within %v", agentName(v),
				time.Since(l.begin).Round(time.Second))
			return &v
		}
	}
	return nil
}

func (l *Leader) warn(err error) {
	if l.config.Warn != nil {
		l.config.Warn(err)
	}
}
