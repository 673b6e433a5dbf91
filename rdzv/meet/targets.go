package meet

import (
	"context"
	"net/netip"
	"time"
)

// The frequency of a search's attempts. It dials burst addresses at once, the next ones if those
// have not answered within burstInterval, and at most maxDialing at a time. An address that has
// answered with an error is tried again after firstWait, and then at intervals that grow up to
// lastWait.
const (
	burst         = 8
	burstInterval = 100 * time.Millisecond
	maxDialing    = 64
	firstWait     = 20 * time.Millisecond
	lastWait      = 200 * time.Millisecond
	// laterPortWait is the interval for the second and later ports of a port sequence, which a
	// store uses only if those before are in use.
	laterPortWait = time.Second
	// rejectedWait is the interval for an agent with a different key.
	rejectedWait = time.Second
	// improveTimeout limits the wait for an address of the store with a better priority than the
	// first one that has answered, so that all agents use the same address if possible.
	improveTimeout = 50 * time.Millisecond
)

// probeTimeout limits the time in which the user of a port must answer.
const probeTimeout = time.Second

// A candidate is an address at which the store may be.
type candidate struct {
	addr      netip.AddrPort // not valid if the name is not resolved yet
	failed    bool           // then: it does not resolve; otherwise the resolver has not answered
	name      string         // the host name or description that the address belongs to; "" if none
	priority  int            // the candidate with the lowest number is tried first
	laterPort bool           // not the first port of the sequence
}

// A source calls add for candidates until ctx ends or it knows no more.
type source func(ctx context.Context, add func(candidate))

// targets contains the addresses that a search tries.
type targets map[netip.AddrPort]*target

type target struct {
	candidate
	dialing  bool
	started  time.Time     // of the last attempt
	next     time.Time     // of the next attempt
	wait     time.Duration // interval before that
	timeouts int           // successive attempts without an answer
	err      error         // last answer
}

// maxTargets limits the memory of a search, because sources may add addresses that other processes
// have sent.
const maxTargets = 4096

// add adds a candidate. One that is known is tried again soon: an agent may have started there.
func (ts targets) add(c candidate) {
	if t := ts[c.addr]; t != nil {
		t.priority, t.laterPort = min(t.priority, c.priority), t.laterPort && c.laterPort
		if soon := t.started.Add(firstWait); soon.Before(t.next) {
			t.next = soon
		}
		return
	}
	valid := c.addr.IsValid() && c.addr.Port() != 0
	if valid && (len(ts) < maxTargets || ts.removeBelow(c.priority)) {
		ts[c.addr] = &target{candidate: c}
	}
}

// removeBelow removes the target with the worst priority if that is worse than priority, and
// reports whether it has removed one.
func (ts targets) removeBelow(priority int) bool {
	var worst *target
	for _, t := range ts {
		if !t.dialing && t.priority > priority && (worst == nil || t.priority > worst.priority) {
			worst = t
		}
	}
	if worst != nil {
		delete(ts, worst.addr)
	}
	return worst != nil
}

// nextWait returns the interval before the next attempt.
func (t *target) nextWait() time.Duration {
	if t.laterPort {
		return laterPortWait
	}
	return min(max(t.wait*3/2, firstWait), lastWait)
}
