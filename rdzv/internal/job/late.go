package job

import (
	"fmt"
	"slices"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// late are agents that have joined an elastic job when it was too late for this attempt. Each waits
// for a seat: that of a spare, with which it is a member of the next attempt, or that the job is
// full.
type late struct {
	config  *settings
	agents  *agents
	members *members
	waiting []record.Member
}

func (l *late) add(m record.Member) {
	l.remove(m.ID)
	l.waiting = append(l.waiting, m)
}

func (l *late) remove(id string) {
	l.waiting = slices.DeleteFunc(l.waiting, func(m record.Member) bool { return m.ID == id })
}

// answer answers those that wait, and returns the ones that are members from now on: while the
// world is not agreed they take the places of those that have been lost meanwhile. If the job has
// all its tasks, or there is no next attempt, they are refused. While the world is not agreed, that
// waits until it is known which members are lost. An agent that is gone is refused at once: what it
// wrote has arrived late.
func (l *late) answer(t *turn, k keys.Attempt, agreed, isLast bool) (joined []record.Member) {
	for _, m := range slices.Clone(l.waiting) {
		answer := record.SeatValue{Seat: record.SpareSeat, Agent: l.config.identity(m)}
		full := l.members.left()+len(m.Tasks) > l.config.Tasks
		switch gone := l.agents.gone[m.ID]; {
		case full && !gone && !agreed && l.agents.await(l.members.all):
			continue
		case full || gone || agreed && isLast:
			answer = record.SeatValue{Full: true}
		case !agreed:
			l.remove(m.ID)
			l.members.add(&member{Member: m, here: true})
			joined = append(joined, m)
			continue
		}
		seat := k.Seats().Of(m.ID)
		t.write(fmt.Sprintf("admit the agent on %s", record.Address(m)), []Cond{absent(seat)},
			Op{Key: seat, Value: answer})
		l.take(m.ID, answer, agreed)
	}
	return joined
}

// take notes the seat of an agent that has joined late.
func (l *late) take(id string, seat record.SeatValue, agreed bool) {
	m := record.Member{ID: id, Tasks: record.Unplaced(1)}
	if seat.Agent != nil {
		m = *seat.Agent
	}
	if i := slices.IndexFunc(l.waiting, func(m record.Member) bool { return m.ID == id }); i >= 0 {
		m = l.waiting[i]
	}
	l.remove(id)
	if known := l.members.byID[id]; known != nil && seat.Full && !agreed {
		l.members.remove(known) // the leader before had no place for it
	}
	if seat.Full || l.members.byID[id] != nil || l.agents.gone[id] {
		return
	}
	l.members.add(&member{Member: m, here: true, seat: seat.Seat, settled: true})
}
