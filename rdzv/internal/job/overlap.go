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

// overlap delays the next attempt until no workers of lost agents can run any more.
type overlap struct{ clearAt time.Time } // until then they may run

// await delays the start of the next workers until none of an agent runs, which was lost at a time.
// silent is Loss.Silent.
func (o *overlap) await(since time.Time, silent bool, c *Config) {
	wait := lostMargin
	if silent {
		wait += c.LostGrace
	}
	if silent && c.revoked() { // its lease was revoked, perhaps long before the end
		wait += c.LeaseTTL
	}
	o.clearAt = o.after(since.Add(wait))
}

// after is a time or, if that is later, when no workers of lost agents run any more.
func (o *overlap) after(at time.Time) time.Time {
	if o.clearAt.After(at) {
		return o.clearAt
	}
	return at
}
