package job

import (
	"rdzv/rdzv/internal/record"
)

// takeLeft notes that an agent has left.
func (a *attempt) takeLeft(t *turn, id string) {
	a.leave.remove(id)
	if a.agents.gone[id] {
		return
	}
	m := a.members.byID[id]
	if m != nil {
		m.withdrawn = true
	}
	a.remove(id, m.known())
	a.lose(t, id, m)
}

// remove notes that an agent is gone for good. known is what was known of it, or nil.
func (a *attempt) remove(id string, known *Member) {
	a.agents.remove(id, known)
	a.members.unseat(id)
	delete(a.members.preparing, id)
	a.late.remove(id)
}

// lose handles the loss of what may be a member.
func (a *attempt) lose(t *turn, id string, m *member) {
	early := a.phase.world == nil && a.end.verdict == nil
	switch {
	case m == nil && (a.phase.complete || a.phase.later || a.config.elastic()):
		// one agent too many
	case m == nil:
		v := record.VerdictOf(record.Lost)
		v.By = id
		a.end.want(v, absent(a.keys.Members().Of(id)))
	case m.lost:
	case early && a.phase.complete: // it may be part of the world that is being published
		m.lost = true
		a.members.pending--
	case early && a.gather.lose(t, m, a.number):
	default:
		a.losses.loseRunning(t, m, a.keys, &a.end)
	}
}

// release gives up an agent that has ended this attempt by withdrawing.
func (a *attempt) release(id string) {
	m := a.members.byID[id]
	if m == nil {
		return
	}
	if !m.lost && !m.settled {
		a.members.pending--
	}
	m.lost, m.withdrawn = true, true
	a.remove(id, &m.Member)
}
