package rdzv

import "time"

// In a store that no agent hosts the others learn that an agent is lost when its lease expires. By
// then a worker has failed that had a connection to one of its workers, and the attempt has ended
// for that reason. While the agents settle the leader learns which of the two came first.

// leaseLag is how much later than at the end of its lease an agent may be lost: etcd looks for such
// leases twice a second, and counts in seconds; and the agent may register again.
const leaseLag = 2*time.Second + returnTime

// mayBeConsequence tells whether a worker failed that had lost its connection to another one, of
// which nothing has been heard yet: its agent may be lost.
func (v *Verdict) mayBeConsequence() bool { return v.Kind == Failed && v.Held > 0 }

// findCause replaces the verdict if the worker that failed first has lost its connection to one of
// an agent that was lost before: the agent has not renewed its lease since the worker failed.
func (l *Leader) findCause() {
	if !l.elected() || !l.verdict.mayBeConsequence() {
		return
	}
	failedAt := l.verdictAt.Add(-l.verdict.Held)
	var first *memberState
	for _, m := range l.joined {
		silent := !m.lostAt.IsZero() && m.lostAt.Sub(failedAt) <= l.term.leaseTTL+leaseLag
		if silent && (first == nil || m.lostAt.Before(first.lostAt)) {
			first = m
		}
	}
	if first != nil {
		l.cause = new(l.lossOf(first))
		l.verdict = l.cause
	}
}
