package job

import (
	"slices"
	"time"

	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/restart"
)

// decide writes that all agents have settled or were lost, or that the time for that is over, and
// the next attempt, or why there is none.
func (s *State) decide(now time.Time, w *writes) {
	a := s.attempt
	e := &a.end
	e.decided = true
	s.findCause()
	d := s.decision()
	v := Settled{Cause: e.cause, Unsettled: a.members.unsettled(), NoRestart: d.Reason}
	if m := a.members.byID[e.verdict.By]; m != nil && e.verdict.Kind == record.Failed {
		v.Unreported, v.Successes = m.lost, a.success.before(e)
	}
	if e.verdict.Kind == record.Ended {
		v.Code = record.EndedCode(e.verdict.Signal, e.outcomes)
	}
	ops := []Op{{Key: a.keys.settled()}}
	if d.Restart {
		next := s.next(now, Latest{
			Attempt: a.number + 1, Delay: d.Delay, Began: s.past.began, Failures: s.past.failures,
		})
		v.Restart = &Restart{Attempt: next.number, Delay: d.Delay, Vacant: next.members.vacancies(),
			Missing: max(0, s.config.MinAgents-len(next.members.all))}
		ops = append(ops, Op{Key: latestKey, Value: s.latest(now, next)})
	}
	ops[0].Value = v
	e.over = !d.Restart
	w.add("write that all agents have settled", []Cond{absent(a.keys.settled())}, ops...)
}

// unsettled names the members that have not settled, for people.
func (m *members) unsettled() string {
	var names []string
	for _, one := range m.all {
		if !one.settled && !one.lost {
			names = append(names, record.AgentName(one.lostVerdict()))
		}
	}
	return record.List(record.Cut(names))
}

// decision is whether there is another attempt: only if all agents have settled, or others may take
// their place.
func (s *State) decision() restart.Decision {
	a, v, policy := s.attempt, s.attempt.end.verdict, s.config.Restarts
	if !v.MayRestart() || policy.Max == 0 {
		return restart.Decision{}
	}
	if v.Withdrawn {
		if !s.releases() {
			return restart.Decision{}
		}
		s.release(v.By)
	}
	if !s.mayGoOn() {
		return restart.Decision{Reason: restart.Lost}
	}
	isMPI := func(w Worker) bool { return w.MPI }
	if slices.ContainsFunc(a.end.outcomes, func(o Outcome) bool {
		return slices.ContainsFunc(o.Workers, isMPI)
	}) {
		return restart.Decision{Reason: restart.MPI}
	}
	s.past.failures = append(slices.Clip(s.past.failures), s.failure())
	return policy.Decide(s.past.failures)
}

// failure is how this attempt has failed.
func (s *State) failure() failure {
	a, v := s.attempt, s.attempt.end.verdict
	lost := func(m *member) bool { return m.lost }
	f := failure{Code: v.Code, Took: v.RanFor}
	switch {
	case v.Kind == record.Lost, v.Withdrawn:
		f.Code, f.Took = restart.LostCode, a.end.verdictAt.Sub(a.gather.agreed)
	case v.Signal != 0:
		f.Code = 128 + v.Signal
	case v.LastLine:
	case v.ReportDelay > 0, slices.ContainsFunc(a.members.all, lost):
		// it has probably lost its connection
	default:
		f.Message = restart.Essence(v.Text, v.Rank, v.LocalRank, v.PID)
	}
	return f
}

// mayGoOn tells whether others may take the place of all agents that are lost, and those that are
// not have settled.
func (s *State) mayGoOn() bool {
	vacant, spares := 0, 0
	for _, m := range s.attempt.members.all {
		switch {
		case m.seat.Spare && !m.lost:
			spares++
		case m.seat.Spare, m.lost && s.elastic():
		case m.lost && m.seat.Slots == m.seat.LocalSize:
			vacant++
		case m.lost, !m.settled:
			return false
		}
	}
	switch {
	case s.attempt.gather.world == nil:
		return false
	case s.elastic():
		return s.enoughMayJoin()
	}
	return vacant <= spares || s.config.Replaceable
}

// latest is what another leader of an attempt has to know. Of the messages only the last one
// counts, see restart.Policy.
func (s *State) latest(now time.Time, next *attempt) Latest {
	at := next.gather.startAt
	if s.clearAt.After(at) {
		at = s.clearAt
	}
	v := Latest{Attempt: next.number, Delay: max(0, at.Sub(now)), Began: s.past.began,
		Failures: slices.Clone(s.past.failures)}
	for i := range v.Failures[:max(0, len(v.Failures)-1)] {
		v.Failures[i].Message = ""
	}
	return v
}

// begin begins the attempt of which the leader has written that it follows this one.
func (s *State) begin(now time.Time, v Latest) {
	if e := &s.attempt.end; e.settled != nil && e.verdict != nil {
		if e.cause != nil {
			e.verdict = e.cause
		}
		if e.verdict.Withdrawn {
			s.release(e.verdict.By)
		}
	}
	s.past.failures, s.past.began = v.Failures, v.Began
	before := s.attempt
	s.attempt = s.next(now, v)
	if one := s.irreplaceable(before); one != nil {
		s.attempt.end.want(s.lossOf(one))
	}
}

// next returns the attempt that follows this one. It has the members of this one, with their seats,
// which have yet to join it.
func (s *State) next(now time.Time, v Latest) *attempt {
	next := s.config.attempt(v.Attempt, now)
	next.gather.startAt = now.Add(v.Delay)
	next.gather.previous = s.attempt.end.settledAt
	for _, m := range s.remaining() {
		next.members.add(&member{Member: m.Member, seat: m.seat, lost: m.lost, withdrawn: m.withdrawn})
	}
	next.members.launched = s.attempt.members.launched
	next.members.seatSpares()
	return next
}

// remaining are the members of the next attempt. Those of an elastic job are in the order of their
// ranks; those that wait for it come last, in the order in which they joined.
func (s *State) remaining() []*member {
	if !s.elastic() {
		return s.attempt.members.all
	}
	lost := func(m *member) bool { return m.lost }
	all := slices.DeleteFunc(slices.Clone(s.attempt.members.all), lost)
	slices.SortStableFunc(all, bySeat)
	return all
}

// irreplaceable is an agent that was lost after it was decided that there is another attempt, and
// without which that cannot be; nil if there is none. before is the attempt that it was lost in.
func (s *State) irreplaceable(before *attempt) *member {
	for _, m := range s.attempt.members.all {
		if m.vacant() && !m.withdrawn && (m.seat.Slots != m.seat.LocalSize || !s.config.Replaceable) {
			return m
		}
	}
	i := slices.IndexFunc(before.members.all, func(m *member) bool { return m.lost })
	if s.elastic() && i >= 0 && !s.enoughMayJoin() {
		return before.members.all[i]
	}
	return nil
}

// forgetPrevious deletes the keys of the previous attempt, so that the store does not grow. All
// agents have joined this attempt. The world of the first one stays: it keeps other agents from
// joining.
func (s *State) forgetPrevious(w *writes) {
	g := &s.attempt.gather
	if !s.attempt.later || g.world == nil || g.forgotten {
		return
	}
	g.forgotten = true
	k := keysOf(s.attempt.number - 1)
	ops := []Op{{Key: k.prefix, End: end(k.prefix)}}
	if s.attempt.number == s.config.Attempt+1 {
		ops = []Op{{Key: k.prefix, End: k.world()}, {Key: k.world() + "\x00", End: end(k.prefix)}}
	}
	w.add("delete the previous attempt", nil, ops...)
	if g.previous > 0 && !s.config.Elected { // which every agent has read
		s.notify(Forgotten{g.previous})
	}
}
