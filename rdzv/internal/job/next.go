package job

import (
	"slices"
	"time"

	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/restart"
)

// succession decides whether another attempt follows, and which.
type succession struct {
	failures  []restart.Failure // of the attempts before the present one
	latestRev int64             // of the key latest; 0 if there is none
	overlap   *overlap
}

// settle writes the verdict if all have settled without one and, if there is one, what follows.
func (s *succession) settle(t *turn, a *attempt) {
	switch {
	case a.end.verdict == nil:
		a.succeed()
		a.end.write(t, a.keys)
	case a.members.pending == 0, !t.now.Before(a.end.settleAt):
		s.decide(t, a)
	}
}

// decide writes that all agents have settled or were lost, or that the time for that is over, and
// the next attempt, or why there is none.
func (s *succession) decide(t *turn, a *attempt) {
	c, e := a.config, &a.end
	e.decided = true
	if c.Elected {
		if first := e.lostBefore(a.members.all, c.LeaseTTL+c.LeaseLag); first != nil {
			e.replace(new(a.losses.verdict(first)))
		}
	}
	d := s.decision(a)
	v := record.Settled{Cause: e.cause, Unsettled: a.members.unsettled(), NoRestart: d.Reason}
	if m := a.members.byID[e.verdict.By]; m != nil && e.verdict.Kind == record.Failed {
		v.Unreported, v.Successes = m.lost, a.success.before(e.failedAt())
		v.Disconnected = a.outcomes.disconnected(e.verdict.Rank)
	}
	if e.verdict.Kind == record.Ended {
		v.Code = record.EndedCode(e.verdict.Signal, a.outcomes.list)
	}
	ops := []Op{{Key: a.keys.Settled()}}
	if d.Restart {
		next := a.next(t.now, a.number+1, d.Delay)
		v.Restart = &record.Restart{
			Attempt: next.number, Delay: record.Seconds(d.Delay), Vacant: next.members.vacancies(),
			Missing: max(0, c.MinTasks-next.members.tasks()),
		}
		ops = append(ops, Op{Key: run.Latest(), Value: s.latest(t.now, next)})
	}
	ops[0].Value = v
	e.over = !d.Restart
	// A request that arrives late must not write again what an attempt had written that is gone.
	unchanged := Cond{Key: run.Latest(), Exists: s.latestRev > 0, Rev: s.latestRev}
	t.write("write that all agents have settled", []Cond{absent(a.keys.Settled()), unchanged}, ops...)
}

// decision is whether there is another attempt: only if all agents have settled, or others may take
// their place.
func (s *succession) decision(a *attempt) restart.Decision {
	v, policy := a.end.verdict, a.config.Restarts
	if !v.MayRestart() || policy.Max == 0 {
		return restart.Decision{}
	}
	if v.Withdrawn {
		if !a.leave.releases(v.By) {
			return restart.Decision{}
		}
		a.release(v.By)
	}
	if !a.losses.mayFollow() {
		return restart.Decision{Reason: restart.Lost}
	}
	if a.outcomes.ranMPI() {
		return restart.Decision{Reason: restart.MPI}
	}
	s.failures = append(slices.Clip(s.failures), a.failure())
	return policy.Decide(s.failures)
}

// failure is how this attempt has failed.
func (a *attempt) failure() restart.Failure {
	v := a.end.verdict
	lost := func(m *member) bool { return m.lost }
	f := restart.Failure{Code: v.Code, Took: time.Duration(v.RanFor)}
	switch {
	case v.Kind == record.Lost, v.Withdrawn:
		f.Code, f.Took = restart.LostCode, a.end.verdictAt.Sub(a.phase.agreed)
	case v.Signal != 0, v.LastLine:
	case v.ReportDelay > 0, slices.ContainsFunc(a.members.all, lost):
		// it has probably lost its connection
	default:
		f.Message = restart.Essence(v.Text, v.Rank, v.LocalRank, v.PID)
	}
	return f
}

// latest returns the value of the key latest, with which any leader begins the attempt next. Only
// the last message is kept: restart.Policy compares no other one with that of the next failure.
func (s *succession) latest(now time.Time, next *attempt) record.Latest {
	v := record.Latest{
		Attempt: next.number, Delay: max(0, s.overlap.after(next.gather.startAt).Sub(now)),
		Began: next.began, Failures: slices.Clone(s.failures),
	}
	for i := range v.Failures[:max(0, len(v.Failures)-1)] {
		v.Failures[i].Message = ""
	}
	return v
}

// begin returns the attempt of which the leader has written that it follows this one.
func (s *succession) begin(t *turn, before *attempt, v record.Latest) *attempt {
	if e := &before.end; e.settled != nil && e.verdict != nil {
		if e.cause != nil {
			e.verdict = e.cause
		}
		if e.verdict.Withdrawn {
			before.release(e.verdict.By)
		}
	}
	s.failures, before.began = v.Failures, v.Began
	a := before.next(t.now, v.Attempt, v.Delay)
	if one := a.losses.irreplaceable(before.members.all); one != nil {
		a.end.want(a.losses.verdict(one))
	}
	return a
}

// next returns the attempt that follows this one. It has the members of this one, with their seats,
// which have yet to join it.
func (a *attempt) next(now time.Time, number int, delay time.Duration) *attempt {
	next := newAttempt(a.config, a.agents, number, now, a.began)
	next.gather.startAt = now.Add(delay)
	next.previous.settledAt = a.end.settledAt
	for _, m := range a.members.remaining(a.config.elastic()) {
		next.members.add(&member{Member: m.Member, seat: m.seat, lost: m.lost, withdrawn: m.withdrawn})
	}
	next.members.launched = a.members.launched
	next.members.seatSpares()
	return next
}
