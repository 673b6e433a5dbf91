package job

import (
	"time"
)

// No worker of an attempt may run when one of the next attempt starts, also if its agent is frozen
// or disconnected. An agent that the store has not answered takes itself for lost before any other
// agent does: the time counts from when it sent the last message that was answered. From then on
// its workers may run for LostGrace. The leader, which learns of the loss later, waits longer.

// lostMargin is how much longer the leader waits than a lost agent may take to kill its workers,
// and how long it waits if the agent's connection has broken, which kills them at once.
const lostMargin = time.Second

// awaitWorkers delays the start of the next workers until none of the agent runs, which was lost at
// a time. silent is Loss.Silent.
func (s *State) awaitWorkers(since time.Time, m *member, silent bool) {
	if m == nil || m.lost || m.seat.Spare || !s.attempt.gather.complete && m.here {
		return // it runs none
	}
	wait := lostMargin
	if silent {
		wait += s.config.LostGrace
	}
	if silent && s.config.revoked() { // its lease was revoked, perhaps long before the end
		wait += s.config.LeaseTTL
	}
	if at := since.Add(wait); at.After(s.clearAt) {
		s.clearAt = at
	}
}

// mayStartAt is when the workers of this attempt may start.
func (s *State) mayStartAt() time.Time {
	if s.clearAt.After(s.attempt.gather.startAt) {
		return s.clearAt
	}
	return s.attempt.gather.startAt
}
