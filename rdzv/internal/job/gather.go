package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"rdzv/internal/plural"
	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// gathering is how the members of an attempt join it, until the world is agreed.
type gathering struct {
	config   *settings
	agents   *agents
	members  *members
	phase    *phase
	end      *ending
	losses   *losses
	late     *late
	outcomes *outcomes

	begin        time.Time
	lastCall     time.Time     // when an elastic job starts; zero while too few have joined
	called       bool          // the last call is over
	waited       time.Duration // between begin and the next notice that agents are missing
	joinDeadline time.Time     // the earliest of all members; zero if none has one
	otherWait    time.Time     // the same of agents without a place, while there are no members
	timedOut     bool          // the deadline has passed, and not all were here
	startAt      time.Time     // not before this are the workers started
	toldDelay    bool          // people know why they are not started although all are here
	allSince     time.Time     // all are here; zero if some are not
}

// open tells whether the attempt waits for members.
func (g *gathering) open() bool { return !g.phase.complete && g.end.verdict == nil }

// admit adds a member. After the first attempt only its agents are admitted, and others in place of
// those that are lost; in an elastic job others at any time.
func (g *gathering) admit(t *turn, id string, value any) {
	known, gone, elastic := g.members.byID[id], g.agents.gone[id], g.config.elastic()
	duplicate := known != nil && known.here
	tooLate := g.phase.complete || gone && g.phase.later ||
		!g.phase.later && g.members.here >= g.config.Tasks // the world is being published, or was to be
	if duplicate || tooLate && !elastic {
		return // or one agent too many, which finds no seat
	}
	m, err := memberOf(id, value)
	if err != nil {
		g.end.want(record.NotReady(fmt.Sprintf("cannot admit agent %.64q: %v", id, err)))
		return
	}
	tooMany := func() bool {
		return known == nil && g.members.tasks()+len(m.Tasks) > g.config.Tasks
	}
	switch {
	case elastic && (g.phase.complete || gone || tooMany()):
		g.late.add(m)
		limitWait(t.now, m, &g.otherWait)
	case known != nil:
		g.members.join(known, m)
		g.joined(t, m)
	case g.phase.later && !elastic:
		if !g.takeVacantSeat(t, m) {
			g.members.unseated = append(g.members.unseated, m)
			limitWait(t.now, m, &g.otherWait)
		}
	default:
		known = &member{Member: m, here: true, lost: gone}
		g.members.add(known)
		if gone {
			g.end.want(g.losses.verdict(known))
		}
		g.joined(t, m)
	}
}

func memberOf(id string, value any) (record.Member, error) {
	m, err := read[record.Member](value)
	if err == nil {
		err = m.Check()
	}
	if err == nil && m.ID != id {
		err = fmt.Errorf("its member has id %.64q", m.ID)
	}
	return m, err
}

// takeVacantSeat makes an agent a member in place of one that is lost, if it can be.
func (g *gathering) takeVacantSeat(t *turn, m record.Member) bool {
	taken, warning := g.members.takeVacantSeat(m)
	if warning != nil {
		t.warn(warning)
	}
	if taken {
		g.joined(t, m)
	}
	return taken
}

// joined handles that there is one more member here.
func (g *gathering) joined(t *turn, m record.Member) {
	g.countLastCall(t.now)
	g.outcomes.takeEarly(t.now)
	limitWait(t.now, m, &g.joinDeadline)
}

// limitWait lowers a deadline to that of an agent that has just come.
func limitWait(now time.Time, m record.Member, earliest *time.Time) {
	deadline := now.Add(m.JoinWithin)
	if m.JoinWithin > 0 && (earliest.IsZero() || deadline.Before(*earliest)) {
		*earliest = deadline
	}
}

// deadline is when the attempt ends if not all are here; zero is never. If all members are lost, an
// agent that cannot take their place alone still has its own.
func (g *gathering) deadline() time.Time { return cmp.Or(g.joinDeadline, g.otherWait) }

// countLastCall starts the last call when enough agents of the first attempt of an elastic job have
// joined, and stops it when too few of them are left.
func (g *gathering) countLastCall(now time.Time) {
	switch {
	case !g.config.elastic() || g.phase.later:
	case g.members.here < g.config.MinTasks:
		g.lastCall, g.called = time.Time{}, false
	case g.lastCall.IsZero():
		g.lastCall = now.Add(g.config.LastCall)
	}
}

// admitLate answers those that wait for a seat since the attempt has been complete.
func (g *gathering) admitLate(t *turn, k keys.Attempt, isLast bool) {
	if g.phase.publishing() && g.end.verdict == nil {
		return
	}
	for _, m := range g.late.answer(t, k, g.phase.world != nil, isLast) {
		g.joined(t, m)
	}
}

// lose handles the loss of a member while the attempt gathers. It reports whether the attempt goes
// on without it, or waits for another one in its place.
func (g *gathering) lose(t *turn, m *member, attempt int) bool {
	switch {
	case g.config.elastic():
		g.drop(t, m)
	case g.phase.later && g.losses.mayReplace(m):
		t.warn(g.members.markVacant(m, attempt, g.config.Restarts.Max))
		for _, m := range slices.Clone(g.members.unseated) {
			if g.takeVacantSeat(t, m) {
				g.members.unseat(m.ID)
			}
		}
	default:
		g.members.leave(m)
		return false
	}
	return true
}

// drop removes an agent of an elastic job that is lost before the world is agreed.
func (g *gathering) drop(t *turn, m *member) {
	g.members.remove(m)
	m.lost = true
	g.countLastCall(t.now)
	if !g.losses.enoughMayJoin() {
		g.end.want(g.losses.tooFew(m))
		return
	}
	if t.restoring {
		return // the leader before has said so
	}
	then := "the job goes on without it"
	if missing := g.config.MinTasks - g.members.left(); g.phase.later && missing > 0 {
		then = fmt.Sprintf("waiting for %d more %s", missing, plural.Noun(missing, "agent"))
	}
	t.warn(fmt.Errorf("%w; %s", m.loss(), then))
}

// allHere tells whether all tasks of the job have joined this attempt: in an elastic job enough,
// for which the last call is over or which were members of the attempt before.
func (g *gathering) allHere() bool {
	m := g.members
	switch {
	case !g.config.elastic() && g.phase.later:
		return m.allHere()
	case m.here >= g.config.Tasks || !g.config.elastic():
		return m.here >= g.config.Tasks
	case g.phase.later:
		return m.here >= g.config.MinTasks && m.allHere()
	}
	return m.here >= g.config.MinTasks && g.called
}

// ready tells whether the world can be agreed: all have joined, none of them may be lost, and the
// workers may start. clear is when no processes of lost agents run any more.
func (g *gathering) ready(now time.Time, clear *overlap) bool {
	return g.open() && len(g.members.all) > 0 && g.allHere() && len(g.agents.departing) == 0 &&
		!now.Before(clear.after(g.startAt)) && !g.agents.await(g.members.all)
}

func (g *gathering) wake(at *earliest, clear *overlap) {
	if !g.open() {
		return
	}
	if g.allHere() {
		at.add(clear.after(g.startAt))
		if !g.toldDelay && !g.allSince.IsZero() && len(g.agents.departing) > 0 {
			at.add(g.allSince.Add(briefDelay))
		}
	}
	if !g.called {
		at.add(g.lastCall)
	}
	at.add(g.deadline())
	if g.config.NextWaiting != nil && !g.phase.later {
		at.add(g.begin.Add(g.waited))
	}
}
