package job

import (
	"fmt"
	"slices"
	"time"

	"rdzv/internal/plural"
	"rdzv/rdzv/internal/record"
)

// outcomes are how the workers of the agents have ended.
type outcomes struct {
	config  *settings
	agents  *agents
	members *members
	end     *ending
	leave   *leaving
	success *stragglers

	list  []record.Outcome // in the order of the store
	early []early          // of agents that are not members yet: one may have registered again
}

// early is the outcome of an agent whose member has yet to be read.
type early struct {
	id    string
	value any
}

// take notes how the workers of an agent have ended, or that it is to leave.
func (s *outcomes) take(now time.Time, id string, value any) {
	m := s.members.byID[id]
	o, err := read[record.Outcome](value)
	switch {
	case err == nil && o.Withdrawn:
		s.leave.ask(id, s.end)
	case m == nil:
		s.early = append(s.early, early{id, value})
	case m.settled:
	case err == nil:
		s.settle(now, m, o)
	default:
		s.members.settle(m)
		v := m.lostVerdict()
		v.Text = fmt.Sprintf("lost %s: cannot read its outcome: %v", record.AgentName(v), err)
		s.end.want(v)
	}
}

// takeEarly takes the outcomes of those that are members by now.
func (s *outcomes) takeEarly(now time.Time) {
	all := s.early
	s.early = nil
	for _, one := range all {
		s.take(now, one.id, one.value)
	}
}

// settle handles that an agent has settled. A failure follows from its outcome if it could not
// report the failure itself.
func (s *outcomes) settle(now time.Time, m *member, o record.Outcome) {
	s.members.settle(m)
	s.leave.remove(m.ID)
	m.ending = o.Ending
	s.list = append(s.list, o)
	s.success.note(now, o)
	if w, failed := o.Failed(); failed {
		s.end.want(record.FailedVerdict(m.ID, o.Host, w))
		return
	}
	if ran := len(o.Workers); ran < m.Workers() {
		text := fmt.Sprintf("ran only %d of its %d workers", ran, m.Workers())
		if ran == 0 {
			text = "did not run its " + plural.Noun(m.Workers(), "worker")
		}
		s.end.want(record.NotReady(record.AgentName(m.lostVerdict()) + " " + text))
		return
	}
	s.success.begin(now, o.Workers, s.end)
}

// takeProgress notes which workers of an agent have ended. A failure ends the job if the agent
// could not report it. A value that cannot be decoded is ignored, because the agent's outcome
// decides.
func (s *outcomes) takeProgress(now time.Time, id string, value any) {
	m := s.members.byID[id]
	o, err := read[record.Outcome](value)
	if m == nil || err != nil {
		return
	}
	m.ended = o.Workers
	if i := slices.IndexFunc(o.Workers, record.Worker.FailedAlone); i >= 0 {
		s.end.want(record.FailedVerdict(m.ID, o.Host, o.Workers[i]))
		return
	}
	s.success.begin(now, o.Workers, s.end)
}

// disconnected is how many workers but that of a rank have lost their connection to another one.
func (s *outcomes) disconnected(but int) (n int) {
	for _, o := range s.list {
		for _, w := range o.Workers {
			if w.Disconnected && w.Rank != but {
				n++
			}
		}
	}
	return n
}

// ranMPI tells whether a worker was an MPI program, which cannot start again.
func (s *outcomes) ranMPI() bool {
	isMPI := func(w record.Worker) bool { return w.MPI }
	return slices.ContainsFunc(s.list, func(o record.Outcome) bool {
		return slices.ContainsFunc(o.Workers, isMPI)
	})
}
