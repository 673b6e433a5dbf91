package job

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Restore returns the state of a job whose leader is new, from what is in the store at one
// revision, and what follows from it.
func Restore(now time.Time, c Config, snapshot []Change) (*State, []Write, []Notice) {
	s := newState(now, c)
	snapshot = slices.Clone(snapshot)
	slices.SortFunc(snapshot, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Rev, b.Rev), strings.Compare(a.Key, b.Key))
	})
	s.restoring = true
	for _, one := range snapshot {
		s.absorb(now, one)
	}
	s.restoring = false
	s.missAbsent(now)
	writes := s.follow(now)
	return s, writes, s.taken()
}

// missAbsent notes which members are gone: the store no longer has the keys of their leases. They
// have had the time to register again before this agent became the leader.
func (s *State) missAbsent(now time.Time) {
	all := slices.Concat(s.attempt.members.unseated, s.attempt.late.waiting)
	for _, m := range s.attempt.members.all {
		if !m.lost {
			all = append(all, m.Member)
		}
	}
	for _, m := range all {
		if _, there := s.agents.present[m.ID]; !there {
			s.miss(now, m.ID, new(m.Identity()), 0)
		}
	}
}
