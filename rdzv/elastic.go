package rdzv

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// elastic tells whether the number of agents may vary, from LeaderConfig.MinAgents to Agents. The
// seat of a lost agent of such a job is not vacant: the next attempt consists of those that remain
// and of those that have joined meanwhile.
func (l *Leader) elastic() bool { return l.config.MinAgents > 0 }

// enoughHere tells whether all agents of an elastic job have joined, or enough, for which the last
// call is over or which were members of the attempt before.
func (l *Leader) enoughHere() bool {
	all := l.called
	if l.later() {
		all = l.here == len(l.joined)
	}
	return l.here == l.config.Agents || l.here >= l.config.MinAgents && all
}

// countLastCall starts the last call when enough agents of the first attempt have joined, and stops
// it when too few of them are left.
func (l *Leader) countLastCall() {
	switch {
	case !l.elastic() || l.later():
	case l.here < l.config.MinAgents:
		l.lastCall, l.called = nil, false
	case l.lastCall == nil:
		l.lastCall = time.After(l.config.LastCall)
	}
}

// endLastCall starts the job with the agents that have joined.
func (l *Leader) endLastCall(ctx context.Context) error {
	l.called = true
	return l.start(ctx)
}

// left is how many agents are not lost.
func (l *Leader) left() (n int) {
	for _, m := range l.joined {
		if !m.lost {
			n++
		}
	}
	return n
}

// enoughMayJoin tells whether enough agents of an elastic job are left, or others may join: those
// that the launcher has started, or without a launcher any that find the store. Before the first
// world all find it.
func (l *Leader) enoughMayJoin() bool {
	switch needed := l.config.MinAgents; {
	case l.left() >= needed, l.config.Replaceable:
		return true
	case l.later() || l.complete:
		return false
	default:
		return !l.launched || l.config.Agents-len(l.gone) >= needed
	}
}

// tooFew is the verdict about the loss of an agent after which an elastic job cannot go on.
func (l *Leader) tooFew(m *memberState) Verdict {
	v, left := m.lostVerdict(), l.left()
	agents := "agents are"
	if left == 1 {
		agents = "agent is"
	}
	v.Text = fmt.Sprintf("%v; %d %s left, and the job needs %d", &v, left, agents,
		l.config.MinAgents)
	return v
}

// drop removes an agent of an elastic job that is lost before the world is agreed.
func (l *Leader) drop(ctx context.Context, m *memberState) error {
	m.lost = true
	l.pending--
	l.joined = slices.DeleteFunc(l.joined, func(other *memberState) bool { return other == m })
	if !m.away {
		l.here--
		l.countLastCall()
	}
	if !l.enoughMayJoin() {
		return l.writeVerdict(ctx, l.tooFew(m))
	}
	then := "the job goes on without it"
	if missing := l.config.MinAgents - l.left(); l.later() && missing > 0 {
		then = fmt.Sprintf("waiting for %d more %s", missing, plural("agent", missing))
	}
	l.warn(fmt.Errorf("%w; %s", m.loss(), then))
	return l.start(ctx)
}

// remaining are the members of the next attempt, in the order of their ranks; those that wait for
// it come last, in the order in which they joined.
func (l *Leader) remaining() []*memberState {
	if !l.elastic() {
		return l.joined
	}
	all := slices.DeleteFunc(slices.Clone(l.joined), func(m *memberState) bool { return m.lost })
	slices.SortStableFunc(all, bySeat)
	return all
}

// bySeat compares members by their ranks; those without come last.
func bySeat(a, b *memberState) int {
	rank := func(m *memberState) int {
		if m.seat.Spare {
			return math.MaxInt
		}
		return m.seat.Rank
	}
	return cmp.Compare(rank(a), rank(b))
}

// assignInTurn assigns consecutive ranks in the order of the tasks, and in a later attempt in that
// of the members. The launcher's ranks, and the node ranks that the user gave, may have gaps.
func (l *Leader) assignInTurn(members []Member) (World, map[string]Seat) {
	tasks := slices.Clone(members)
	if !l.later() {
		tasks = inOrder(members)
	}
	for i := range tasks {
		tasks[i].Rank, tasks[i].NodeRank = Unknown, Unknown
	}
	seats := seat(tasks)
	return worldOf(members, seats), seats
}

// receive admits an agent that joins an elastic job when it is too late for this attempt: it waits
// for the next one as a spare. If the job has all its agents, or there is no next attempt, it is
// refused.
func (l *Leader) receive(ctx context.Context, m Member) error {
	state := &memberState{Member: m, seat: spareSeat, settled: true}
	answer := seatValue{Seat: spareSeat}
	isLast := l.config.Check != nil || l.config.Attempt >= l.config.Restarts.Max
	switch {
	case l.gone[m.ID]:
		return nil
	case l.left() >= l.config.Agents, isLast:
		answer = seatValue{Full: true}
	default:
		if l.elected() {
			answer.Agent = new(m.identity())
		}
		l.members[m.ID] = state
		l.joined = append(l.joined, state)
	}
	if err := l.commit(ctx, nil, l.put(l.keys.seat(m.ID), encode(answer))); err != nil {
		return fmt.Errorf("cannot admit the agent on %s: %w", address(m), err)
	}
	return nil
}
