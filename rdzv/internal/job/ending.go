package job

import (
	"fmt"
	"slices"
	"time"

	"rdzv/rdzv/internal/record"
)

// ending is how an attempt ends: with the first verdict, then when all its members have settled.
type ending struct {
	wanted    []wanted // verdicts, the first one first
	verdict   *Verdict
	verdictAt time.Time // when it was read
	cause     *Verdict  // replaces the one in the store; nil if that is right
	outcomes  []Outcome // in the order of the store
	early     []early   // of agents that are not members yet: one may have registered again
	found     Verdict   // with whose problems a job with Check ends
	resultIs  bool      // the verdict has been written that follows when all have settled
	settleAt  time.Time // the latest time to which this attempt waits for its members
	decided   bool      // what follows is being written
	settled   *Settled
	settledAt int64 // revision
	over      bool
}

// wanted is a verdict that has to be written unless there is one.
type wanted struct {
	verdict Verdict
	conds   []Cond
	written bool
}

func (e *ending) want(v Verdict, conds ...Cond) {
	if e.verdict == nil {
		e.wanted = append(e.wanted, wanted{verdict: v, conds: conds})
	}
}

func (s *State) writeVerdict(w *writes) {
	e := &s.attempt.end
	for i := range e.wanted {
		if one := &e.wanted[i]; e.verdict == nil && !one.written {
			one.written = true
			w.add(fmt.Sprintf("write the verdict %q", one.verdict.Error()),
				append([]Cond{absent(s.attempt.keys.verdict())}, one.conds...),
				Op{Key: s.attempt.keys.verdict(), Value: clipped(one.verdict)})
		}
	}
}

func clipped(v Verdict) Verdict {
	v.Text = record.Clip(v.Text)
	return v
}

// takeVerdict notes how the attempt ends.
func (s *State) takeVerdict(now time.Time, c Change) {
	e := &s.attempt.end
	if e.verdict != nil {
		return
	}
	v, err := read[Verdict](c.Value)
	if err != nil { // also ends the job, because no agent can decode it
		v = record.NotReady(fmt.Sprintf("cannot read the verdict: %v", err))
	}
	e.verdict, e.verdictAt, e.wanted = &v, now, nil
	e.settleAt = now.Add(s.config.SettleTimeout)
	s.takeWithdrawal(&v)
}

// takeOutcome notes how the workers of an agent have ended, or that it is to leave.
func (s *State) takeOutcome(now time.Time, id string, value any) {
	a := s.attempt
	m := a.members.byID[id]
	o, err := read[Outcome](value)
	switch {
	case err == nil && o.Withdrawn:
		if a.end.verdict == nil && !s.agents.gone[id] {
			a.leave.ask(id)
		}
		return
	case m == nil:
		a.end.early = append(a.end.early, early{id, value})
		return
	case m.settled:
		return
	}
	if err == nil {
		s.settleMember(now, m, o)
		return
	}
	a.members.settled(m)
	v := m.lostVerdict()
	v.Text = fmt.Sprintf("lost %s: cannot read its outcome: %v", record.AgentName(v), err)
	a.end.want(v)
}

func (m *members) settled(one *member) {
	one.settled = true
	if !one.lost {
		m.pending--
	}
}

// early is the outcome of an agent whose member has yet to be read.
type early struct {
	id    string
	value any
}

// takeEarly takes the outcomes of those that are members by now.
func (s *State) takeEarly(now time.Time) {
	all := s.attempt.end.early
	s.attempt.end.early = nil
	for _, one := range all {
		s.takeOutcome(now, one.id, one.value)
	}
}

// settleMember handles that an agent has settled. A failure follows from its outcome if it could
// not report the failure itself.
func (s *State) settleMember(now time.Time, m *member, o Outcome) {
	a := s.attempt
	a.members.settled(m)
	a.leave.remove(m.ID)
	m.Links, m.ending = o.Links, o.Ending
	a.end.outcomes = append(a.end.outcomes, o)
	a.success.note(now, o)
	if w, failed := o.Failed(); failed {
		a.end.want(record.FailedVerdict(m.ID, o.Host, w))
		return
	}
	if ran := len(o.Workers); ran < m.Slots && s.config.Check == nil {
		text := fmt.Sprintf("ran only %d of its %d workers", ran, m.Slots)
		if ran == 0 {
			text = "did not run its " + record.Plural("worker", m.Slots)
		}
		a.end.want(record.NotReady(record.AgentName(m.lostVerdict()) + " " + text))
		return
	}
	s.firstSuccess(now, o.Workers)
}

// takeProgress notes which workers of an agent have ended. A failure ends the job if the agent
// could not report it. A value that cannot be decoded is ignored, because the agent's outcome
// decides.
func (s *State) takeProgress(now time.Time, id string, value any) {
	m := s.attempt.members.byID[id]
	o, err := read[Outcome](value)
	if m == nil || err != nil {
		return
	}
	m.ended = o.Workers
	if i := slices.IndexFunc(o.Workers, Worker.FailedAlone); i >= 0 {
		s.attempt.end.want(record.FailedVerdict(m.ID, o.Host, o.Workers[i]))
		return
	}
	s.firstSuccess(now, o.Workers)
}

// settleDeleted handles that all workers of an agent have succeeded: in a store that is full it
// deletes its member instead of putting its outcome. The end of its lease deletes agent/ID too.
func (s *State) settleDeleted(now time.Time) {
	a := s.attempt
	if !s.config.Elected || !a.members.deleted || a.gather.world == nil || a.end.verdict != nil {
		return
	}
	a.members.deleted = false
	for _, m := range a.members.all {
		_, there := s.agents.present[m.ID]
		if !m.deleted || m.settled || m.lost {
			continue
		}
		if !there {
			a.members.deleted = true // if it registers again its member is there, too
			continue
		}
		o := Outcome{Host: m.Host}
		for i := range m.seat.Slots {
			o.Workers = append(o.Workers, Worker{Rank: m.seat.Rank + i, LocalRank: m.seat.LocalRank + i})
		}
		s.settleMember(now, m, o)
	}
}

// settle writes the verdict if all have settled without one and, if there is one, what follows.
func (s *State) settle(now time.Time, w *writes) {
	a := s.attempt
	e := &a.end
	if e.verdict == nil {
		if a.gather.world != nil && a.members.pending == 0 && !e.resultIs {
			e.resultIs = true
			e.want(s.result())
			s.writeVerdict(w)
		}
		return
	}
	if a.members.pending == 0 || !now.Before(e.settleAt) {
		s.decide(now, w)
	}
}

func (e *ending) wake(at *earliest) {
	if e.verdict != nil {
		at.add(e.settleAt)
	}
}

// takeSettled notes that what follows this attempt is known.
func (s *State) takeSettled(v Settled, rev int64) {
	e := &s.attempt.end
	e.decided, e.settled, e.settledAt = true, &v, rev
	if v.Cause != nil {
		e.cause = v.Cause
	}
	e.over = v.Restart == nil
}

// Full is called if the store has refused a write because it is full: it accepts only deletions. A
// job whose workers have all succeeded ends nevertheless. It returns what to write instead, and
// whether that helps.
func (s *State) Full(now time.Time, w Write) ([]Write, bool) {
	e := &s.attempt.end
	done, isVerdict := w.Ops[len(w.Ops)-1].Value.(Verdict)
	_, isSettled := w.Ops[len(w.Ops)-1].Value.(Settled)
	switch {
	case !s.config.Elected:
		return nil, false
	case isVerdict && done.Kind == record.Done:
		s.takeVerdict(now, Change{Value: done})
		return s.follow(now), true
	case isSettled && e.verdict.Kind == record.Done:
		return []Write{{"end the job", nil, []Op{{Key: s.attempt.keys.world()}}}}, true
	}
	return nil, false
}
