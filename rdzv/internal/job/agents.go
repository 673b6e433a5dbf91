package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/internal/record"
)

// An agent lives as long as its key agent/ID. Where no agent hosts the store that is deleted at the
// end of its lease, which may be revoked although the agent lives: it then registers again. Only
// lost/ID makes an agent lost. It is put in the commit that deletes agent/ID or, after some time,
// by the leader if there is no agent/ID. An agent with that key never returns.

// agents are those that have registered in the job's run.
type agents struct {
	present   map[string]*Member // by ID, with what identifies them
	missing   []missing          // whose key was deleted
	gone      map[string]bool    // that are lost or have left, and never return
	strangers []string           // hosts of agents of another version
}

// missing is an agent whose key was deleted.
type missing struct {
	id       string
	since    time.Time
	lostAt   time.Time // if it has not registered again by then
	agent    *Member   // nil if that is not known
	declared bool      // the leader has tried to put lost/ID
}

func (s *State) absorbAgent(now time.Time, id string, c Change) {
	a := &s.agents
	if c.Value != nil {
		m, err := read[Member](c.Value)
		if err != nil {
			m = Member{ID: id} // it is there; its member says what is wrong
		}
		a.present[id] = &m
		a.missing = slices.DeleteFunc(a.missing, func(m missing) bool { return m.id == id })
		return
	}
	s.miss(now, id, a.present[id], s.config.ReturnTime)
	delete(a.present, id)
}

// miss notes that an agent has no key agent/ID. It has so much time to register again, or more if
// the leases of all agents may have been revoked.
func (s *State) miss(now time.Time, id string, agent *Member, wait time.Duration) {
	if s.agents.gone[id] || s.agents.isMissing(id) != nil {
		return
	}
	if s.config.revoked() {
		wait = s.config.AllReturnTime
	}
	s.agents.missing = append(s.agents.missing,
		missing{id: id, since: now, lostAt: now.Add(wait), agent: agent})
}

func (a *agents) isMissing(id string) *missing {
	i := slices.IndexFunc(a.missing, func(m missing) bool { return m.id == id })
	if i < 0 {
		return nil
	}
	return &a.missing[i]
}

// awaitsReturn tells whether it is not known whether a member is lost: it may register again.
func (s *State) awaitsReturn() bool {
	return slices.ContainsFunc(s.attempt.members.all, func(m *member) bool {
		return !m.lost && s.agents.isMissing(m.ID) != nil
	})
}

func (a *agents) wake(at *earliest) {
	for _, m := range a.missing {
		if !m.declared {
			at.add(m.lostAt)
		}
	}
}

// loseMissing makes the missing agents lost that have not registered again: first the spares, so
// that none of these takes over a seat.
func (s *State) loseMissing(now time.Time, w *writes) {
	isSpare := func(m missing) bool {
		known := s.attempt.members.byID[m.id]
		return known != nil && known.seat.Spare
	}
	due := func(m missing) bool { return !m.declared && !now.Before(m.lostAt) }
	if !slices.ContainsFunc(s.agents.missing, due) {
		return
	}
	slices.SortStableFunc(s.agents.missing, func(a, b missing) int {
		return cmp.Or(trueFirst(isSpare(a), isSpare(b)))
	})
	for i := range s.agents.missing {
		m := &s.agents.missing[i]
		if due(*m) {
			m.declared = true
			w.add(fmt.Sprintf("write that agent %q is lost", m.id),
				[]Cond{absent(agentKey(m.id)), absent(lostKey(m.id))},
				Op{Key: lostKey(m.id), Value: Loss{Silent: true, Ago: now.Sub(m.since), Agent: m.agent}})
		}
	}
}

// lose notes that an agent is lost. Its member or outcome may be in the store and not yet read
// here.
func (s *State) lose(now time.Time, id string, loss Loss) {
	if s.agents.gone[id] {
		return
	}
	since := now.Add(-loss.Ago)
	if m := s.agents.isMissing(id); m != nil {
		since = m.since
	}
	m := s.attempt.members.byID[id]
	if m != nil {
		m.silent = loss.After
	}
	s.awaitWorkers(since, m, loss.Silent)
	s.remove(id)
	s.loseMember(now, id, m)
}

// remove notes that an agent is gone for good.
func (s *State) remove(id string) {
	a := &s.agents
	a.gone[id] = true
	a.missing = slices.DeleteFunc(a.missing, func(m missing) bool { return m.id == id })
	s.attempt.members.unseat(id)
	delete(s.attempt.members.preparing, id)
	s.attempt.late.remove(id)
}

// loseMember handles the loss of what may be a member.
func (s *State) loseMember(now time.Time, id string, m *member) {
	a := s.attempt
	early := a.gather.world == nil && a.end.verdict == nil
	switch {
	case m == nil && (a.gather.complete || a.later || s.elastic()):
		// one agent too many
	case m == nil:
		v := record.VerdictOf(record.Lost)
		v.By = id
		a.end.want(v, absent(a.keys.member(id)))
	case m.lost:
	case early && a.gather.complete: // it may be part of the world that is being published
		m.lost = true
		a.members.pending--
	case early && s.elastic():
		s.drop(now, m)
	case early && a.later && s.mayReplace(m):
		s.vacate(now, m)
	default:
		if early {
			s.attempt.members.leave(m)
		}
		s.loseRunning(now, m)
	}
}

// loseRunning handles the loss of a member that has its seat. That of one that has settled does not
// end the job.
func (s *State) loseRunning(now time.Time, m *member) {
	if !m.lost && !m.settled {
		s.attempt.members.pending--
	}
	m.lost = true
	if m.seat.Spare && s.attempt.gather.world != nil && s.attempt.end.verdict == nil {
		s.warn(s.spareLost(m))
	}
	if m.settled {
		return
	}
	m.lostAt = now
	s.attempt.end.want(s.lossOf(m), absent(s.attempt.keys.outcome(m.ID)))
}

// lossOf returns the verdict when an agent is lost. If it had no launcher, and others wait for the
// world in a store that no agent hosts, those join again: whoever has killed it may start it again.
func (s *State) lossOf(m *member) Verdict {
	if s.config.Elected && !s.attempt.gather.complete && !s.attempt.later && m.OccupiesHost() {
		return record.VerdictOf(record.Moved)
	}
	if s.elastic() && !s.enoughMayJoin() {
		return s.tooFew(m)
	}
	return m.lostVerdict()
}

func (a *agents) addStranger(host string) bool {
	if slices.Contains(a.strangers, host) {
		return false
	}
	a.strangers = append(a.strangers, host)
	return true
}

// strangerOf returns the host of an agent of another version that cannot join, and says so; nil if
// it has this version.
func strangerOf(value any) (host string, warning error) {
	v, version := Stranger{}, protocol.Version
	if b, ok := value.([]byte); ok {
		v, version = record.DecodeAny[Stranger](b)
	}
	if version == protocol.Version || v.Host == "" {
		return "", nil
	}
	return v.Host, fmt.Errorf("%s (pid %d) cannot join: it %s: use the same release of rdzv on "+
		"all nodes", v.Host, v.PID, protocol.Difference(version))
}
