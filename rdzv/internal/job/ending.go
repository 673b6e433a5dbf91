package job

import (
	"fmt"
	"time"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// phase is how far an attempt has come: its members gather, then the world is published, then their
// workers run. How it ends is in ending.
type phase struct {
	later    bool            // the attempt follows another one
	complete bool            // all have joined, and the world is being published or cannot be
	exports  *record.Exports // of rank 0's agent, nil if there are none
	world    *record.World   // nil until it is published
	agreed   time.Time
}

// publishing tells whether the world is on its way to the store.
func (p *phase) publishing() bool { return p.complete && p.world == nil }

// ending is how the attempt ends: with the first verdict, then when all its members have settled.
type ending struct {
	wanted    []wanted // verdicts, the first one first
	verdict   *record.Verdict
	verdictAt time.Time       // when it was read
	cause     *record.Verdict // replaces the one in the store; nil if that is right
	resultIs  bool            // the verdict is wanted that follows when all have settled
	settleAt  time.Time       // the latest time to which this attempt waits for its members
	decided   bool            // what follows is being written
	settled   *record.Settled
	settledAt int64 // revision
	over      bool
}

// wanted is a verdict that has to be written unless there is one.
type wanted struct {
	verdict record.Verdict
	conds   []Cond
	written bool
}

func (e *ending) want(v record.Verdict, conds ...Cond) {
	if e.verdict == nil {
		e.wanted = append(e.wanted, wanted{verdict: v, conds: conds})
	}
}

// write writes the verdicts that are wanted, each once. The store keeps the first one.
func (e *ending) write(t *turn, k keys.Attempt) {
	for i := range e.wanted {
		if one := &e.wanted[i]; e.verdict == nil && !one.written {
			one.written = true
			t.write(fmt.Sprintf("write the verdict %q", one.verdict.Error()),
				append([]Cond{absent(k.Verdict())}, one.conds...),
				Op{Key: k.Verdict(), Value: clipped(one.verdict)})
		}
	}
}

func clipped(v record.Verdict) record.Verdict {
	v.Text = record.Clip(v.Text)
	return v
}

// take notes the verdict, and tells whether it is the first one. From now on the attempt waits for
// its members, at most until some time.
func (e *ending) take(now time.Time, value any, settleAt time.Time) bool {
	if e.verdict != nil {
		return false
	}
	v, err := read[record.Verdict](value)
	if err != nil { // also ends the job, because no agent can decode it
		v = record.NotReady(fmt.Sprintf("cannot read the verdict: %v", err))
	}
	e.verdict, e.verdictAt, e.wanted, e.settleAt = &v, now, nil, settleAt
	return true
}

func (e *ending) wake(at *earliest) {
	if e.verdict != nil {
		at.add(e.settleAt)
	}
}

// takeSettled notes that what follows this attempt is known.
func (e *ending) takeSettled(v record.Settled, rev int64) {
	e.decided, e.settled, e.settledAt = true, &v, rev
	if v.Cause != nil {
		e.cause = v.Cause
	}
	e.over = v.Restart == nil
}

// failedAt is when the worker of the verdict failed.
func (e *ending) failedAt() time.Time {
	return e.verdictAt.Add(-time.Duration(e.verdict.ReportDelay))
}

// In a store that no agent hosts the others learn that an agent is lost when its lease expires. By
// then a worker has failed that had a connection to one of its workers, and the attempt has ended
// for that reason. While the agents settle the leader learns which of the two came first.

// lostBefore is the agent that was lost before the worker failed that failed first, if that has
// lost its connection to another one: the agent has not renewed its lease since. within is by how
// much later the loss may be known. nil if there is none.
func (e *ending) lostBefore(all []*member, within time.Duration) (first *member) {
	if !e.verdict.MayBeConsequence() {
		return nil
	}
	for _, m := range all {
		silent := !m.lostAt.IsZero() && m.lostAt.Sub(e.failedAt()) <= within
		if silent && (first == nil || m.lostAt.Before(first.lostAt)) {
			first = m
		}
	}
	return first
}

// replace replaces the verdict by its cause.
func (e *ending) replace(cause *record.Verdict) { e.cause, e.verdict = cause, cause }
