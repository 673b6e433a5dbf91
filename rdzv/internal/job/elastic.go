package job

import (
	"fmt"
	"slices"
	"time"

	"rdzv/rdzv/internal/record"
)

// The number of agents of an elastic job may vary, from Config.MinAgents to Agents. The seat of a
// lost agent is not vacant there: the next attempt consists of those that remain and of those that
// have joined meanwhile.

func (s *State) elastic() bool { return s.config.MinAgents > 0 }

// enoughHere tells whether all agents of an elastic job have joined, or enough, for which the last
// call is over or which were members of the attempt before.
func (s *State) enoughHere() bool {
	m := &s.attempt.members
	all := s.attempt.gather.called
	if s.attempt.later {
		all = m.here == len(m.all)
	}
	return m.here == s.config.Agents || m.here >= s.config.MinAgents && all
}

// countLastCall starts the last call when enough agents of the first attempt have joined, and stops
// it when too few of them are left.
func (s *State) countLastCall(now time.Time) {
	g := &s.attempt.gather
	switch {
	case !s.elastic() || s.attempt.later:
	case s.attempt.members.here < s.config.MinAgents:
		g.lastCall, g.called = time.Time{}, false
	case g.lastCall.IsZero():
		g.lastCall = now.Add(s.config.LastCall)
	}
}

// enoughMayJoin tells whether enough agents of an elastic job are left, or others may join: those
// that the launcher has started, or without a launcher any that find the store. Before the first
// world all find it.
func (s *State) enoughMayJoin() bool {
	m := &s.attempt.members
	switch needed := s.config.MinAgents; {
	case m.left() >= needed, s.config.Replaceable:
		return true
	case s.attempt.later || s.attempt.gather.complete:
		return false
	default:
		return !m.launched || s.config.Agents-len(s.agents.gone) >= needed
	}
}

// tooFew is the verdict about the loss of an agent after which an elastic job cannot go on.
func (s *State) tooFew(m *member) Verdict {
	v, left := m.lostVerdict(), s.attempt.members.left()
	agents := "agents are"
	if left == 1 {
		agents = "agent is"
	}
	v.Text = fmt.Sprintf("%v; %d %s left, and the job needs %d", &v, left, agents,
		s.config.MinAgents)
	return v
}

// drop removes an agent of an elastic job that is lost before the world is agreed.
func (s *State) drop(now time.Time, m *member) {
	all := &s.attempt.members
	all.remove(m)
	m.lost = true
	s.countLastCall(now)
	if !s.enoughMayJoin() {
		s.attempt.end.want(s.tooFew(m))
		return
	}
	if s.restoring {
		return // the leader before has said so
	}
	then := "the job goes on without it"
	if missing := s.config.MinAgents - all.left(); s.attempt.later && missing > 0 {
		then = fmt.Sprintf("waiting for %d more %s", missing, record.Plural("agent", missing))
	}
	s.warn(fmt.Errorf("%w; %s", m.loss(), then))
}

// assignInTurn assigns consecutive ranks in the order of the tasks, and in a later attempt in that
// of the members. The launcher's ranks, and the node ranks that the user gave, may have gaps.
func (s *State) assignInTurn(all []Member) (World, map[string]Seat) {
	tasks := slices.Clone(all)
	if !s.attempt.later {
		tasks = InOrder(all)
	}
	for i := range tasks {
		tasks[i].Rank, tasks[i].NodeRank = Unknown, Unknown
	}
	seats := SeatTasks(tasks)
	return WorldOf(all, seats), seats
}
