package job

import (
	"fmt"
	"slices"
	"syscall"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// An agent without workers that has received SIGTERM puts an outcome that says so, and stays until
// the leader has decided: by signal/left/ID, or by a verdict because the job cannot go on without
// it. One with workers writes that verdict itself.

// leaving are the agents without workers that are to leave.
type leaving struct {
	agents  *agents
	members *members
	phase   *phase
	losses  *losses

	asked    []string        // in the order of the store
	told     string          // the first one, if the decision about it is on its way
	requests map[string]bool // all that have put such an outcome
}

// ask notes that an agent is to leave. If it is already lost, the store may have refused the
// verdict about that, which depends on there being no outcome.
func (l *leaving) ask(id string, e *ending) {
	if l.requests == nil {
		l.requests = map[string]bool{}
	}
	l.requests[id] = true
	switch m := l.members.byID[id]; {
	case e.verdict != nil:
	case !l.agents.gone[id]:
		if !slices.Contains(l.asked, id) {
			l.asked = append(l.asked, id)
		}
	case m != nil && m.lost && !m.settled && l.phase.world != nil:
		e.want(l.losses.verdict(m))
	}
}

// unsettled returns the condition of a verdict about the loss of an agent: it has not settled, as
// its outcome would show. An outcome that only asks to leave does not count.
func (l *leaving) unsettled(id string, k keys.Attempt) []Cond {
	if l.requests[id] {
		return nil
	}
	return []Cond{absent(k.Outcomes().Of(id))}
}

func (l *leaving) remove(id string) {
	l.asked = slices.DeleteFunc(l.asked, func(other string) bool { return other == id })
}

// undecided tells whether it is not known yet whether all members stay.
func (l *leaving) undecided() bool { return len(l.asked) > 0 }

// decide decides on the agents that are to leave, one after another: whether the job goes on
// without one depends on whether the others have left. If there is a verdict they will know that
// one.
func (l *leaving) decide(t *turn, k keys.Attempt, e *ending) {
	if e.verdict != nil || l.phase.publishing() {
		return // or the world is being published, after which it is known whether they have workers
	}
	if len(l.asked) == 0 || l.agents.await(l.members.all) {
		return // it is not known yet how many are left
	}
	l.asked = slices.DeleteFunc(l.asked, func(id string) bool { return l.agents.gone[id] })
	if len(l.asked) == 0 || l.told == l.asked[0] {
		return
	}
	id := l.asked[0]
	l.told = id
	m := l.members.byID[id]
	if m == nil || m.seat.Spare || l.losses.goesOnWithout(m) && !l.phase.complete {
		t.write(fmt.Sprintf("let agent %q leave", id),
			[]Cond{absent(k.Verdict()), absent(k.Left().Of(id))},
			Op{Key: k.Left().Of(id), Value: true})
		return
	}
	v := m.lostVerdict()
	v.Kind, v.Signal = record.Ended, record.Signal(syscall.SIGTERM)
	v.Withdrawn = l.losses.goesOnWithout(m)
	e.want(v)
}

// takeVerdict handles that the attempt ends: if that is because of an agent without workers that
// was to leave, it has settled.
func (l *leaving) takeVerdict(v *record.Verdict) {
	m := l.members.byID[v.By]
	if v.Kind == record.Ended && m != nil && slices.Contains(l.asked, m.ID) && !m.settled {
		l.members.settle(m)
	}
	l.asked, l.told = nil, ""
}

// releases tells whether the agent that has ended this attempt by withdrawing is given up like one
// that is lost: its workers have ended and the job goes on without it. If another agent has
// received a signal meanwhile, that was for all.
func (l *leaving) releases(id string) bool {
	m := l.members.byID[id]
	forAll := func(other *member) bool { return other.ending && other != m }
	switch {
	case m == nil, slices.ContainsFunc(l.members.all, forAll):
		return false
	case m.lost: // when it had written the verdict
		return true
	}
	return m.settled && l.losses.goesOnWithout(m)
}
