package job

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"rdzv/rdzv/internal/record"
)

// An agent without workers that has received SIGTERM puts an outcome that says so, and stays until
// the leader has decided: by signal/left/ID, or by a verdict because the job cannot go on without
// it. One with workers writes that verdict itself.

// leaving are the agents without workers that are to leave.
type leaving struct {
	asked []string // in the order of the store
	told  string   // the first one, if the decision about it is on its way
}

func (l *leaving) ask(id string) {
	if !slices.Contains(l.asked, id) {
		l.asked = append(l.asked, id)
	}
}

func (l *leaving) remove(id string) {
	l.asked = slices.DeleteFunc(l.asked, func(other string) bool { return other == id })
}

// undecided tells whether it is not known yet whether all members stay.
func (l *leaving) undecided() bool { return len(l.asked) > 0 }

// letLeave decides on the agents that are to leave, one after another: whether the job goes on
// without one depends on whether the others have left. If there is a verdict they will know that
// one.
func (s *State) letLeave(w *writes) {
	a := s.attempt
	if a.end.verdict != nil || a.gather.complete && a.gather.world == nil {
		return // or the world is being published, after which it is known whether they have workers
	}
	if len(a.leave.asked) == 0 || s.awaitsReturn() {
		return // it is not known yet how many are left
	}
	a.leave.asked = slices.DeleteFunc(a.leave.asked, func(id string) bool { return s.agents.gone[id] })
	if len(a.leave.asked) == 0 || a.leave.told == a.leave.asked[0] {
		return
	}
	id := a.leave.asked[0]
	a.leave.told = id
	m := a.members.byID[id]
	if m == nil || m.seat.Spare || s.goesOnWithout(m) && !a.gather.complete {
		w.add(fmt.Sprintf("let agent %q leave", id),
			[]Cond{absent(a.keys.verdict()), absent(a.keys.left(id))},
			Op{Key: a.keys.left(id), Value: true})
		return
	}
	v := m.lostVerdict()
	v.Kind, v.Signal, v.Withdrawn = record.Ended, int(syscall.SIGTERM), s.goesOnWithout(m)
	a.end.want(v)
}

// takeLeft notes that an agent has left.
func (s *State) takeLeft(now time.Time, id string) {
	s.attempt.leave.remove(id)
	if s.agents.gone[id] {
		return
	}
	m := s.attempt.members.byID[id]
	if m != nil {
		m.withdrawn = true
	}
	s.remove(id)
	if m != nil {
		s.loseMember(now, id, m)
	}
}

// takeWithdrawal handles a verdict about an agent without workers that was to leave: it has
// settled.
func (s *State) takeWithdrawal(v *Verdict) {
	a := s.attempt
	m := a.members.byID[v.By]
	if v.Kind == record.Ended && m != nil && slices.Contains(a.leave.asked, m.ID) && !m.settled {
		a.members.settled(m)
	}
	a.leave = leaving{}
}

// goesOnWithout tells whether the job goes on if the agent withdraws: at once with a spare or fewer
// agents, otherwise when the agent has been started again, or another one in its place.
func (s *State) goesOnWithout(m *member) bool {
	switch {
	case m.seat.Spare:
		return true
	case s.elastic():
		return s.attempt.members.left() > s.config.MinAgents
	}
	return s.mayReplace(m)
}

// releases tells whether the agent that has ended this attempt by withdrawing is given up like one
// that is lost: its workers have ended and the job goes on without it. If another agent has
// received a signal meanwhile, that was for all.
func (s *State) releases() bool {
	a := s.attempt
	m := a.members.byID[a.end.verdict.By]
	forAll := func(other *member) bool { return other.ending && other != m }
	switch {
	case m == nil, slices.ContainsFunc(a.members.all, forAll):
		return false
	case m.lost: // when it had written the verdict
		return true
	}
	return m.settled && s.goesOnWithout(m)
}

// release gives it up.
func (s *State) release(id string) {
	a := s.attempt
	m := a.members.byID[id]
	if m == nil {
		return
	}
	if !m.lost && !m.settled {
		a.members.pending--
	}
	m.lost, m.withdrawn = true, true
	s.remove(id)
}
