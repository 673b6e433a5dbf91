package job

import (
	"time"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// attempt is one attempt of the job: its features, each of which knows those that it needs.
type attempt struct {
	config *settings
	agents *agents
	number int
	began  time.Time // when the first world of the job was published; zero before
	keys   keys.Attempt

	phase     phase
	end       ending
	members   members
	losses    losses
	late      late
	leave     leaving
	success   stragglers
	outcomes  outcomes
	problems  problems
	agreement agreement
	gather    gathering
	previous  previous
}

func newAttempt(c *settings, all *agents, number int, now, began time.Time) *attempt {
	a := &attempt{config: c, agents: all, number: number, began: began, keys: run.Attempt(number)}
	a.phase.later = number > c.Attempt
	a.members.byID = map[string]*member{}
	a.losses = losses{config: c, agents: all, members: &a.members, phase: &a.phase}
	a.late = late{config: c, agents: all, members: &a.members}
	a.leave = leaving{agents: all, members: &a.members, phase: &a.phase, losses: &a.losses}
	a.outcomes = outcomes{config: c, agents: all, members: &a.members, end: &a.end,
		leave: &a.leave, success: &a.success}
	a.problems = problems{phase: &a.phase}
	a.agreement = agreement{config: c, keys: a.keys, members: &a.members, phase: &a.phase,
		problems: &a.problems}
	a.gather = gathering{config: c, agents: all, members: &a.members, phase: &a.phase, end: &a.end,
		losses: &a.losses, late: &a.late, outcomes: &a.outcomes, begin: now}
	return a
}

func (a *attempt) isSpare(id string) bool {
	m := a.members.byID[id]
	return m != nil && m.seat.Spare
}

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
func (a *attempt) remove(id string, known *record.Member) {
	a.agents.remove(id, known)
	a.members.unseat(id)
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
		a.losses.loseRunning(t, m, &a.end, a.leave.unsettled(m.ID, a.keys))
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
	if !a.agents.gone[id] {
		a.agents.depart(&m.Member)
	}
	a.remove(id, &m.Member)
}

// previous removes the keys of the attempt before, once.
type previous struct {
	forgotten bool  // it has been removed
	settledAt int64 // the revision at which it settled; 0 if it is not known
}

// forget deletes the keys of the attempt before this one, so that the store does not grow. All
// agents have joined this attempt. The world of the first one stays: it keeps other agents from
// joining.
func (p *previous) forget(t *turn, number int, c *settings) {
	if p.forgotten {
		return
	}
	p.forgotten = true
	k := run.Attempt(number)
	ops := []Op{{Key: k.Prefix, End: k.End()}}
	if number == c.Attempt {
		ops = []Op{{Key: k.Prefix, End: k.World()}, {Key: k.World() + "\x00", End: k.End()}}
	}
	t.write("delete the previous attempt", nil, ops...)
	if p.settledAt > 0 && !c.Elected { // which every agent has read
		t.notify(Forgotten{p.settledAt})
	}
}
