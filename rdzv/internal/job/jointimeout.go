package job

import (
	"slices"
	"time"

	"rdzv/rdzv/internal/record"
)

// limitJoin ends a job whose agents have not all joined in time, and the last call.
func (s *State) limitJoin(now time.Time) {
	a := s.attempt
	g := &a.gather
	if g.complete || a.end.verdict != nil {
		return
	}
	if !g.lastCall.IsZero() && !now.Before(g.lastCall) {
		g.called = true
	}
	if g.timedOut || g.joinDeadline.IsZero() || now.Before(g.joinDeadline) {
		return
	}
	g.timedOut = true
	switch {
	case s.allHere():
	case s.elastic() && !a.later && a.members.here >= s.config.MinAgents:
		g.called = true
	default:
		a.end.want(s.incomplete(now))
	}
}

// incomplete is the verdict when not all agents have joined in time.
func (s *State) incomplete(now time.Time) Verdict {
	if v := s.vacantTooLong(now); v != nil {
		return *v
	}
	all := s.attempt.members.present()
	if tasks := InOrder(all); len(tasks) > 0 && tasks[0].Rank <= 0 && tasks[0].NodeRank <= 0 {
		withRank0Problems(all, tasks[0].ID) // as far as it is known by now which agent has rank 0
	}
	s.gathered(all)
	v := record.VerdictOf(record.Incomplete)
	v.Roster = new(s.roster())
	v.Problems, v.MoreProblems = ProblemsOf(all)
	return v
}

// withRank0Problems adds to a member's problems those that it has if rank 0 is one of its workers.
func withRank0Problems(all []Member, id string) {
	for i, m := range all {
		if m.ID == id {
			all[i].Problems = slices.Concat(m.Problems, m.Rank0Problems)
		}
	}
}
