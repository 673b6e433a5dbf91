package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"rdzv/internal/plural"
	"rdzv/rdzv/internal/record"
)

// An agent of a later attempt that is lost before its workers have started leaves its seat to a
// spare or to another agent, for which the attempt waits.

// markVacant makes the seat of an agent vacant that is lost before the workers of a later attempt
// have started, or gives it to a spare. It returns what to tell people.
func (m *members) markVacant(one *member, attempt, restarts int) (warning error) {
	one.lost = true
	m.pending--
	switch spare := m.spare(); {
	case one.seat.Spare:
		warning = m.spareLost(one, false)
	case spare != nil:
		warning = fmt.Errorf("%w; %s takes its place", one.loss(), spare.Host)
	default:
		warning = fmt.Errorf("%w; waiting for an agent in place of %s (restart %d of %d)", one.loss(),
			one.Host, attempt, restarts)
	}
	m.leave(one)
	if one.before != nil { // as if it had never joined
		m.all[slices.Index(m.all, one)] = one.before
		delete(m.byID, one.ID)
	}
	m.seatSpares()
	return warning
}

// takeVacantSeat gives a vacant seat to an agent that joins, if there is one for it: that of its
// node rank or, without one, that of its node or else any. A node has one agent. It returns why an
// agent cannot take over the seat, for people.
func (m *members) takeVacantSeat(one record.Member) (taken bool, warning error) {
	at := -1
	for i, other := range m.all {
		sameNode := one.Node != "" && one.Node == other.Node
		switch {
		case sameNode && !other.vacant():
			return false, nil
		case !other.vacant(), one.NodeRank != other.NodeRank:
		case at < 0 || sameNode:
			at = i
		}
	}
	if at < 0 {
		return false, nil
	}
	lost := m.all[at]
	if one.Workers() != lost.seat.Workers() {
		return false, fmt.Errorf("the agent on %s cannot take over the ranks of %s: it runs %d "+
			"workers, not %d", record.Address(one), lost.Host, one.Workers(),
			lost.seat.Workers())
	}
	next := &member{Member: one, here: true, seat: lost.seat, before: lost,
		replaces: cmp.Or(lost.replaces, lost.Host)}
	m.all[at], m.byID[one.ID] = next, next
	m.count(next, 1)
	m.pending++
	return true, nil
}

// spare returns an agent that may take over the seat of a lost one; nil if there is none.
func (m *members) spare() *member {
	i := slices.IndexFunc(m.all, func(m *member) bool { return m.seat.Spare && !m.lost })
	if i < 0 {
		return nil
	}
	return m.all[i]
}

// seatSpares gives vacant seats to spares, and forgets the spares that are lost.
func (m *members) seatSpares() {
	for _, one := range m.all {
		if spare := m.spare(); one.vacant() && !one.seat.Spare && spare != nil {
			spare.seat, spare.replaces = one.seat, cmp.Or(one.replaces, one.Host)
			one.seat = record.SpareSeat
		}
	}
	m.all = slices.DeleteFunc(m.all, func(m *member) bool { return m.seat.Spare && m.lost })
}

// spareLost returns the warning that a spare is lost, which does not end the attempt. In an elastic
// job a spare is an agent that waits for the next attempt.
func (m *members) spareLost(one *member, elastic bool) error {
	if elastic {
		return fmt.Errorf("lost the agent on %s, which waited for the next attempt: %s",
			record.Address(one.Member), one.reason())
	}
	left := 0
	for _, other := range m.all {
		if other.seat.Spare && !other.lost {
			left++
		}
	}
	return fmt.Errorf("lost the spare on %s: %s; the job goes on with %d %s",
		record.Address(one.Member), one.reason(), left, plural.Noun(left, "spare"))
}

// replaced are those that have taken over a seat in this attempt.
func (m *members) replaced() (list []record.Replaced) {
	for _, one := range m.all {
		if one.replaces != "" {
			ranks := one.ranks().Ranks
			list = append(list, record.Replaced{Ranks: ranks, Host: one.Host, Lost: one.replaces})
		}
	}
	return list
}

// vacancies are the seats that nobody has taken over.
func (m *members) vacancies() (list []record.NodeRanks) {
	for _, one := range m.all {
		if one.vacant() {
			list = append(list, one.ranks())
		}
	}
	return list
}

// vacantTooLong is the verdict when nobody has taken over the seat of an agent in time; nil if
// there is no such seat.
func (m *members) vacantTooLong(waited time.Duration) *record.Verdict {
	for _, one := range m.all {
		if one.vacant() {
			v := one.lostVerdict()
			v.Text = fmt.Sprintf("lost %s, and no other agent took its place within %v",
				record.AgentName(v), waited.Round(time.Second))
			return &v
		}
	}
	return nil
}
