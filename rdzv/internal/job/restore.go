package job

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Restore returns the state of a job whose leader is new, from what is in the store at one
// revision, and what follows from it. known are agents that were there before, as far as this one
// knows: there is nothing in the store of an agent that was lost before it had a seat.
func Restore(
	now time.Time, c Config, snapshot []Change, known []Member,
) (*State, []Write, []Notice) {
	s := newState(now, c)
	snapshot = slices.Clone(snapshot)
	slices.SortFunc(snapshot, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Rev, b.Rev), strings.Compare(a.Key, b.Key))
	})
	s.restoring = true
	s.restoreKnown(snapshot, known)
	for _, one := range snapshot {
		s.absorb(now, one)
	}
	s.restoring = false
	s.missAbsent(now, snapshot)
	writes := s.follow(now)
	return s, writes, s.taken()
}

// restoreKnown makes the known agents members that are gone although they were not lost.
func (s *State) restoreKnown(snapshot []Change, known []Member) {
	for _, m := range known {
		key := agentKey(m.ID)
		if !slices.ContainsFunc(snapshot, func(c Change) bool { return c.Key == key }) {
			s.agents.known = append(s.agents.known, m)
		}
	}
}

// missAbsent notes which members are gone: the store no longer has the keys of their leases. They
// have had the time to register again before this agent became the leader.
func (s *State) missAbsent(now time.Time, snapshot []Change) {
	for _, m := range s.agents.known {
		if s.attempt.members.byID[m.ID] == nil && !s.attempt.later && s.attempt.gather.world == nil &&
			!s.agents.gone[m.ID] {
			s.attempt.members.add(&member{Member: m})
		}
	}
	s.agents.known = nil
	for _, m := range s.attempt.members.all {
		if _, there := s.agents.present[m.ID]; !there && !m.lost {
			s.miss(now, m.ID, new(m.Identity()), 0)
		}
	}
}
