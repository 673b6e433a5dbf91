package job

import (
	"fmt"
	"slices"
	"syscall"

	"rdzv/internal/plural"
	"rdzv/rdzv/internal/record"
)

// losses decides what the loss of an agent means for the job: whether that goes on without it, or
// with another one in its place.
type losses struct {
	config  *settings
	agents  *agents
	members *members
	phase   *phase
}

// mayReplace tells whether another agent may take over the seat of this one, if that is lost: only
// if it runs all workers of its node. Nobody need replace a spare.
func (l *losses) mayReplace(m *member) bool {
	return m.seat.Spare || m.ownsNode() &&
		(l.config.Replaceable || l.members.spare() != nil)
}

// goesOnWithout tells whether the job goes on if the agent withdraws: at once with a spare or fewer
// agents, otherwise when the agent has been started again, or another one in its place.
func (l *losses) goesOnWithout(m *member) bool {
	switch {
	case m.seat.Spare:
		return true
	case l.config.elastic():
		return l.members.left()-len(m.Tasks) >= l.config.MinTasks
	}
	return l.mayReplace(m)
}

// enoughMayJoin tells whether enough agents of an elastic job are left, or others may join: those
// that the launcher has started, or without a launcher any that find the store. Before the first
// world all find it.
func (l *losses) enoughMayJoin() bool {
	switch needed := l.config.MinTasks; {
	case l.members.left() >= needed, l.config.Replaceable:
		return true
	case l.phase.later || l.phase.complete:
		return false
	default:
		return !l.members.launched || l.config.Tasks-l.agents.goneTasks >= needed
	}
}

// verdict returns the verdict when an agent is lost. If it had no launcher, and others wait for the
// world in a store that no agent hosts, those join again: whoever has killed it may start it again.
// An agent that was allowed to leave ends the job if the spare for its place has been lost since.
func (l *losses) verdict(m *member) record.Verdict {
	if m.withdrawn {
		v := m.lostVerdict()
		v.Kind, v.Signal = record.Ended, record.Signal(syscall.SIGTERM)
		return v
	}
	if l.config.Elected && !l.phase.complete && !l.phase.later && m.OccupiesHost() {
		return record.VerdictOf(record.Moved)
	}
	if l.config.elastic() && !l.enoughMayJoin() {
		return l.tooFew(m)
	}
	return m.lostVerdict()
}

// tooFew is the verdict about the loss of an agent after which an elastic job cannot go on.
func (l *losses) tooFew(m *member) record.Verdict {
	v, left, what, are := m.lostVerdict(), l.members.left(), "agent", "are"
	if l.members.launched {
		what = "task"
	}
	if left == 1 {
		are = "is"
	}
	v.Text = fmt.Sprintf("%v; %s %s left, and the job needs %d", &v, plural.Of(left, what), are,
		l.config.MinTasks)
	return v
}

// mayFollow tells whether another attempt may follow: others may take the place of all agents that
// are lost, and those that are not have settled.
func (l *losses) mayFollow() bool {
	vacant, spares := 0, 0
	for _, m := range l.members.all {
		switch {
		case m.seat.Spare && !m.lost:
			spares++
		case m.seat.Spare, m.lost && l.config.elastic():
		case m.lost && m.ownsNode():
			vacant++
		case m.lost, !m.settled:
			return false
		}
	}
	switch {
	case l.phase.world == nil:
		return false
	case l.config.elastic():
		return l.enoughMayJoin()
	}
	return vacant <= spares || l.config.Replaceable
}

// irreplaceable is an agent that was lost after it was decided that this attempt follows, and
// without which that cannot be; nil if there is none. before are the members of the attempt that it
// was lost in.
func (l *losses) irreplaceable(before []*member) *member {
	for _, m := range l.members.all {
		if m.vacant() && !m.withdrawn && (!m.ownsNode() || !l.config.Replaceable) {
			return m
		}
	}
	i := slices.IndexFunc(before, func(m *member) bool { return m.lost })
	if l.config.elastic() && i >= 0 && !l.enoughMayJoin() {
		return before[i]
	}
	return nil
}

// loseRunning handles the loss of a member that has its seat. That of one that has settled does not
// end the job; unsettled is the condition for that in the store.
func (l *losses) loseRunning(t *turn, m *member, e *ending, unsettled []Cond) {
	if !m.lost && !m.settled {
		l.members.pending--
	}
	m.lost = true
	if m.seat.Spare && l.phase.world != nil && e.verdict == nil {
		t.warn(l.members.spareLost(m, l.config.elastic()))
	}
	if m.settled {
		return
	}
	m.lostAt = t.now
	e.want(l.verdict(m), unsettled...)
}
