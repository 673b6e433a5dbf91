package rdzv

import (
	"cmp"
	"fmt"
	"slices"
)

// withoutSpares separates tasks in order from the last n of them, which are to wait as spares for
// the loss of another one. The host of the store is none of them.
func withoutSpares(tasks []Member, n int) (working, spares []Member, problem *Problem) {
	working = slices.Clone(tasks)
	if n == 0 {
		return working, nil, nil
	}
	for _, node := range nodesOf(tasks) {
		first := tasks[0]
		if len(node) > 1 {
			return nil, nil, &Problem{Kind: OtherProblem, Text: fmt.Sprintf("cannot keep spares: there are "+
				"%d agents on %s, but with spares each node has one", len(node), node[0].Host)}
		}
		if node[0].Slots != first.Slots {
			return nil, nil, &Problem{Kind: OtherProblem, Text: fmt.Sprintf("cannot keep spares: %s runs "+
				"%d workers and %s %d, but with spares all nodes run the same number", first.Host,
				first.Slots, node[0].Host, node[0].Slots)}
		}
	}
	for i := len(working) - 1; i >= 0 && len(spares) < n; i-- {
		if !working[i].Hosting {
			spares = append(spares, working[i])
			working = slices.Delete(working, i, i+1)
		}
	}
	return working, spares, nil
}

// spareSeat is the seat of an agent that waits for the loss of another one.
var spareSeat = Seat{Rank: Unknown, LocalRank: Unknown, Node: Unknown, Spare: true}

// excuseSpare does not wait for the outcome of a spare: it has no workers that could end.
func (l *Leader) excuseSpare(m *memberState) {
	if m.seat.Spare {
		m.settled = true
		l.pending--
	}
}

// spare returns an agent that may take over the seat of a lost one; nil if there is none.
func (l *Leader) spare() *memberState {
	i := slices.IndexFunc(l.joined, func(m *memberState) bool { return m.seat.Spare && !m.lost })
	if i < 0 {
		return nil
	}
	return l.joined[i]
}

// seatSpares gives vacant seats to spares, and forgets the spares that are lost.
func (l *Leader) seatSpares() {
	for _, m := range l.joined {
		if spare := l.spare(); m.vacant() && !m.seat.Spare && spare != nil {
			spare.seat, spare.replaces = m.seat, cmp.Or(m.replaces, m.Host)
			m.seat = spareSeat
		}
	}
	l.joined = slices.DeleteFunc(l.joined, func(m *memberState) bool { return m.seat.Spare && m.lost })
}

// spareLost is what to tell people when a spare is lost, which does not end the attempt.
func (l *Leader) spareLost(m *memberState) error {
	if l.elastic() {
		return fmt.Errorf("lost the agent on %s, which waited for the next attempt: %s",
			address(m.Member), m.reason())
	}
	left := 0
	for _, other := range l.joined {
		if other.seat.Spare && !other.lost {
			left++
		}
	}
	return fmt.Errorf("lost the spare on %s: %s; the job goes on with %d %s", address(m.Member),
		m.reason(), left, plural("spare", left))
}
