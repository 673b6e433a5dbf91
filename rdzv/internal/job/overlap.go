package job

import (
	"time"

	"rdzv/rdzv/internal/record"
)

// No process of an attempt may run when a worker of the next attempt starts, also if its agent is
// frozen or disconnected. An agent that the store has not answered takes itself for lost before any
// other agent does: its workers have a lease, whose time counts from when it sent the last message
// that was answered. From then on its processes may run for LostGrace. How long the leader, which
// learns of the loss later, waits depends on what is proved.

// lostMargin is how much longer the leader waits than the processes of a lost agent may run.
const lostMargin = time.Second

// overlap delays the next attempt until no processes of lost agents can run any more.
type overlap struct {
	clearAt time.Time // until then they may run
	host    string    // of the one that may run for longest; "" if it is not known
}

// await delays the start of the next workers until no process of an agent of this host runs, which
// was lost at a time: if it is proved that none runs by the margin only. If the agent was not heard
// for the peer timeout the lease of its workers is over. In any other case it may have been renewed
// just before.
func (o *overlap) await(since time.Time, l record.Loss, host string, c *settings) {
	wait := lostMargin
	switch {
	case l.Left:
		return
	case l.Ended:
	case l.After > 0:
		wait += c.LostGrace
	default:
		wait += max(c.PeerTimeout, c.LeaseTTL) + c.LostGrace
	}
	if at := since.Add(wait); at.After(o.clearAt) {
		o.clearAt, o.host = at, host
	}
}

// after is a time or, if that is later, when no processes of lost agents run any more.
func (o *overlap) after(at time.Time) time.Time {
	if o.clearAt.After(at) {
		return o.clearAt
	}
	return at
}
