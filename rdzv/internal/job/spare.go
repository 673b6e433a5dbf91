package job

import (
	"cmp"
	"fmt"
	"slices"

	"rdzv/rdzv/internal/record"
)

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

// spareLost is what to tell people when a spare is lost, which does not end the attempt.
func (s *State) spareLost(m *member) error {
	if s.elastic() {
		return fmt.Errorf("lost the agent on %s, which waited for the next attempt: %s",
			record.Address(m.Member), m.reason())
	}
	left := 0
	for _, other := range s.attempt.members.all {
		if other.seat.Spare && !other.lost {
			left++
		}
	}
	return fmt.Errorf("lost the spare on %s: %s; the job goes on with %d %s",
		record.Address(m.Member), m.reason(), left, record.Plural("spare", left))
}
