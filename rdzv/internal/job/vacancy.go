package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"rdzv/rdzv/internal/record"
)

// An agent of a later attempt that is lost before its workers have started leaves its seat to a
// spare or to another agent, for which the attempt waits.

// mayReplace tells whether another agent may take over the seat of this one, if that is lost: only
// if it runs all workers of its node. Nobody need replace a spare.
func (s *State) mayReplace(m *member) bool {
	return m.seat.Spare || m.seat.Slots == m.seat.LocalSize &&
		(s.config.Replaceable || s.attempt.members.spare() != nil)
}

// vacate makes the seat of an agent vacant that is lost before the workers of a later attempt have
// started, or gives it to a spare.
func (s *State) vacate(now time.Time, m *member) {
	all := &s.attempt.members
	m.lost = true
	all.pending--
	switch spare := all.spare(); {
	case m.seat.Spare:
		s.warn(s.spareLost(m))
	case spare != nil:
		s.warn(fmt.Errorf("%w; %s takes its place", m.loss(), spare.Host))
	default:
		s.warn(fmt.Errorf("%w; waiting for an agent in place of %s (restart %d of %d)", m.loss(), m.Host,
			s.attempt.number, s.config.Restarts.Max))
	}
	all.leave(m)
	if m.before != nil { // as if it had never joined
		all.all[slices.Index(all.all, m)] = m.before
		delete(all.byID, m.ID)
	}
	all.seatSpares()
	for _, m := range slices.Clone(all.unseated) {
		if s.fill(m) {
			all.unseat(m.ID)
			s.joined(now, m)
		}
	}
}

// fill gives a vacant seat to an agent that joins, if there is one for it: that of its node rank
// or, without one, that of its node or else any. A node has one agent.
func (s *State) fill(m Member) bool {
	a := s.attempt
	at := -1
	for i, other := range a.members.all {
		sameNode := m.Node != "" && m.Node == other.Node
		switch {
		case sameNode && !other.vacant():
			return false
		case !other.vacant(), m.NodeRank != other.NodeRank:
		case at < 0 || sameNode:
			at = i
		}
	}
	if at < 0 {
		return false
	}
	lost := a.members.all[at]
	if m.Slots != lost.seat.Slots {
		s.warn(fmt.Errorf("the agent on %s cannot take over the ranks of %s: it runs %d workers, not %d",
			record.Address(m), lost.Host, m.Slots, lost.seat.Slots))
		return false
	}
	one := &member{Member: m, here: true, seat: lost.seat, before: lost,
		replaces: cmp.Or(lost.replaces, lost.Host)}
	a.members.all[at], a.members.byID[m.ID] = one, one
	a.members.here++
	a.members.pending++
	return true
}

// replaced are those that have taken over a seat in this attempt.
func (s *State) replaced() (list []Replaced) {
	for _, m := range s.attempt.members.all {
		if m.replaces != "" {
			list = append(list, Replaced{Ranks: m.ranks().Ranks, Host: m.Host, Lost: m.replaces})
		}
	}
	return list
}

// vacancies are the seats that nobody has taken over.
func (m *members) vacancies() (list []NodeRanks) {
	for _, one := range m.all {
		if one.vacant() {
			list = append(list, one.ranks())
		}
	}
	return list
}

// vacantTooLong is the verdict when nobody has taken over the seat of an agent in time; nil if
// there is no such seat.
func (s *State) vacantTooLong(now time.Time) *Verdict {
	for _, m := range s.attempt.members.all {
		if m.vacant() {
			v := m.lostVerdict()
			v.Text = fmt.Sprintf("lost %s, and no other agent took its place within %v",
				record.AgentName(v), now.Sub(s.attempt.gather.begin).Round(time.Second))
			return &v
		}
	}
	return nil
}
