package job

import (
	"fmt"
	"time"

	"rdzv/rdzv/internal/record"
)

// gathering is how the members of an attempt agree on its world.
type gathering struct {
	begin        time.Time
	lastCall     time.Time     // when an elastic job starts; zero while too few have joined
	called       bool          // the last call is over
	waited       time.Duration // between begin and the next notice that agents are missing
	joinDeadline time.Time     // the earliest of all members; zero if none has one
	timedOut     bool          // that has passed
	startAt      time.Time     // not before this are the workers started
	complete     bool          // all have joined, and the world is being published or cannot be
	seats        map[string]SeatValue
	exports      *Exports // of rank 0's agent, nil if there are none
	world        *World   // nil until it is published
	agreed       time.Time
	forgotten    bool  // the attempt before has been removed
	previous     int64 // the revision at which that settled; 0 if it is not known
}

// admit adds a member. After the first attempt only its agents are admitted, and others in place of
// those that are lost; in an elastic job others at any time.
func (s *State) admit(now time.Time, id string, value any) {
	a := s.attempt
	delete(a.members.preparing, id)
	known := a.members.byID[id]
	if known != nil {
		known.deleted = false
	}
	duplicate := known != nil && known.here
	tooLate := a.gather.complete || s.agents.gone[id] && a.later ||
		!a.later && a.members.here == s.config.Agents // the world is being published, or was to be
	if duplicate || tooLate && !s.elastic() {
		return // or one agent too many, which finds no seat
	}
	m, err := memberOf(id, value)
	if err != nil {
		a.end.want(record.NotReady(fmt.Sprintf("cannot admit agent %.64q: %v", id, err)))
		return
	}
	tooMany := known == nil && len(a.members.all) >= s.config.Agents
	switch {
	case s.elastic() && (a.gather.complete || s.agents.gone[id] || tooMany):
		a.late.add(m)
		return
	case known != nil:
		known.Member, known.here = m, true
		a.members.here++
	case a.later && !s.elastic():
		if !s.fill(m) {
			a.members.unseated = append(a.members.unseated, m)
			return
		}
	default:
		known = &member{Member: m, here: true, lost: s.agents.gone[id]}
		a.members.add(known)
		if known.lost {
			a.end.want(s.lossOf(known))
		}
	}
	s.joined(now, m)
}

// joined handles that there is one more member here.
func (s *State) joined(now time.Time, m Member) {
	s.countLastCall(now)
	if len(s.attempt.end.early) > 0 {
		s.takeEarly(now)
	}
	g := &s.attempt.gather
	deadline := now.Add(m.JoinWithin)
	if m.JoinWithin > 0 && (g.joinDeadline.IsZero() || deadline.Before(g.joinDeadline)) {
		g.joinDeadline = deadline
	}
}

func memberOf(id string, value any) (Member, error) {
	m, err := read[Member](value)
	if err == nil {
		err = m.Check()
	}
	if err == nil && m.ID != id {
		err = fmt.Errorf("its member has id %.64q", m.ID)
	}
	return m, err
}

// allHere tells whether all agents of the job have joined this attempt.
func (s *State) allHere() bool {
	m := &s.attempt.members
	switch {
	case s.elastic():
		return s.enoughHere()
	case s.attempt.later:
		return m.here == len(m.all)
	}
	return m.here == s.config.Agents
}

// start agrees on the world if all have joined, when the delay has passed, and it is known that all
// of them live.
func (s *State) start(now time.Time, w *writes) {
	a := s.attempt
	if a.gather.complete || a.end.verdict != nil || a.leave.undecided() || len(a.members.all) == 0 ||
		!s.allHere() || now.Before(s.mayStartAt()) || s.awaitsReturn() {
		return
	}
	s.agree(now, w)
}

func (s *State) wakeGathering(at *earliest) {
	g := &s.attempt.gather
	if g.complete || s.attempt.end.verdict != nil {
		return
	}
	if s.allHere() {
		at.add(s.mayStartAt())
	}
	if !g.called {
		at.add(g.lastCall)
	}
	if !g.timedOut {
		at.add(g.joinDeadline)
	}
	if s.config.NextWaiting != nil && !s.attempt.later {
		at.add(g.begin.Add(g.waited))
	}
}
