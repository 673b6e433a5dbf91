package job

import (
	"fmt"
	"slices"
	"time"

	"rdzv/rdzv/internal/record"
)

// late are agents that have joined an elastic job when it was too late for this attempt. Each waits
// for a seat: that of a spare, with which it is a member of the next attempt, or that the job is
// full.
type late struct{ waiting []Member }

func (l *late) add(m Member) {
	l.remove(m.ID)
	l.waiting = append(l.waiting, m)
}

func (l *late) remove(id string) {
	l.waiting = slices.DeleteFunc(l.waiting, func(m Member) bool { return m.ID == id })
}

// answerLate answers those that wait. If the job has all its agents, or there is no next attempt,
// they are refused.
func (s *State) answerLate(now time.Time, w *writes) {
	a := s.attempt
	if a.gather.complete && a.gather.world == nil && a.end.verdict == nil {
		return // the world is being published
	}
	isLast := s.config.Check != nil || a.number >= s.config.Restarts.Max
	for _, m := range slices.Clone(a.late.waiting) {
		answer := SeatValue{Seat: record.SpareSeat, Agent: s.identity(m)}
		full := a.members.left() >= s.config.Agents
		switch {
		case full || a.gather.world != nil && isLast:
			answer = SeatValue{Full: true}
		case a.gather.world == nil: // the place of one that has been lost meanwhile
			a.late.remove(m.ID)
			a.members.add(&member{Member: m, here: true})
			s.joined(now, m)
			continue
		}
		w.add(fmt.Sprintf("admit the agent on %s", record.Address(m)), nil,
			Op{Key: a.keys.seat(m.ID), Value: answer})
		s.takeLate(m.ID, answer)
	}
}

// takeLate notes the seat of an agent that has joined late.
func (s *State) takeLate(id string, seat SeatValue) {
	a := s.attempt
	m := Member{ID: id}
	if seat.Agent != nil {
		m = *seat.Agent
	}
	if i := slices.IndexFunc(a.late.waiting, func(m Member) bool { return m.ID == id }); i >= 0 {
		m = a.late.waiting[i]
	}
	a.late.remove(id)
	if known := a.members.byID[id]; known != nil && seat.Full && a.gather.world == nil {
		a.members.remove(known) // the leader before had no place for it
	}
	if seat.Full || a.members.byID[id] != nil || s.agents.gone[id] {
		return
	}
	a.members.add(&member{Member: m, here: true, seat: seat.Seat, settled: true})
}
