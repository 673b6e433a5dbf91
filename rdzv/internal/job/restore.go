package job

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Restore returns the state of a job whose leader is new, from what is in the store at one
// revision, and what follows from it.
func Restore(
	now time.Time, c Config, in Store, snapshot []Change,
) (*State, []Write, []Notice) {
	s, t := newState(now, c, in), &turn{now: now, restoring: true}
	snapshot = slices.Clone(snapshot)
	slices.SortFunc(snapshot, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Rev, b.Rev), strings.Compare(a.Key, b.Key))
	})
	for _, one := range snapshot {
		s.absorb(t, one)
	}
	t.restoring = false
	s.missAbsent(now)
	s.follow(t)
	return s, t.writes, t.notices
}

// missAbsent notes which members are gone: the store no longer has the keys of their leases. How
// long ago these were deleted is not known, so that they have the time to register again.
func (s *State) missAbsent(now time.Time) {
	a := s.attempt
	all := slices.Concat(a.members.unseated, a.late.waiting)
	for _, m := range a.members.all {
		if !m.lost {
			all = append(all, m.Member)
		}
	}
	for _, m := range all {
		if _, there := s.agents.present[m.ID]; !there {
			s.agents.miss(now, m.ID, new(m.Identity()), s.config.returnTime())
		}
	}
}

// Continue lets a state that was restored wait no longer than the one that it replaces, unless
// other agents are lost since.
func (s *State) Continue(before *State) {
	if s.attempt.number != before.attempt.number {
		return
	}
	s.attempt.gather.startAt = before.attempt.gather.startAt
	for id := range s.agents.gone {
		if !before.agents.gone[id] {
			return
		}
	}
	s.overlap = before.overlap
}
