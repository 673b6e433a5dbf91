package rdzv

import (
	"context"
	"fmt"
)

// readOutcome takes in how an agent's workers ended. An outcome with a failure that
// no verdict preceded is the verdict: its agent could not say it itself.
func (l *Leader) readOutcome(ctx context.Context, id string, value []byte) error {
	a := l.members[id]
	if a == nil || a.settled {
		return nil
	}
	a.settled = true
	if !a.lost {
		l.pending--
	}
	o, err := decode[Outcome](value)
	if err != nil {
		v := l.lostVerdict(a)
		v.Text = fmt.Sprintf("lost %s: cannot read its outcome: %v", v.agentName(), err)
		return l.writeVerdict(ctx, v)
	}
	l.outcomes = append(l.outcomes, o)
	return l.judge(ctx, a, o)
}

// judge says what an agent's outcome means for a job that has no verdict yet.
func (l *Leader) judge(ctx context.Context, a *memberState, o Outcome) error {
	if w, failed := o.failed(); failed {
		return l.writeVerdict(ctx, failedVerdict(a.ID, o.Host, w))
	}
	if len(o.Workers) < a.Slots {
		return l.writeVerdict(ctx, unready(l.nameOf(a)+" "+missingWorkers(len(o.Workers), a.Slots)))
	}
	if l.complete && l.pending == 0 {
		return l.writeVerdict(ctx, verdictOf(Done))
	}
	l.noteSuccess(o.Workers)
	return nil
}

// missingWorkers says that an agent did not run all of its workers.
func missingWorkers(ran, workers int) string {
	if ran == 0 {
		return "did not run its " + plural("worker", workers)
	}
	return fmt.Sprintf("ran only %d of its %d workers", ran, workers)
}

// markLost takes in that an agent is gone. What it has said before is in the store,
// though it may not have been seen here: an agent that settled is not lost.
func (l *Leader) markLost(ctx context.Context, id string) error {
	a := l.members[id]
	switch {
	case a == nil && l.complete:
		return nil // one too many
	case a == nil:
		l.lostEarly[id] = true
		v := verdictOf(Lost)
		v.By = id
		return l.writeVerdict(ctx, v, l.keys.member(id))
	case a.settled || a.lost:
		return nil
	}
	a.lost = true
	l.pending--
	return l.writeVerdict(ctx, l.lostVerdict(a), l.keys.outcome(id))
}

// lostVerdict is the verdict on an agent that went without a word.
func (l *Leader) lostVerdict(a *memberState) Verdict {
	v := Verdict{Kind: Lost, By: a.ID, Host: a.Host, PID: a.PID, Rank: a.Rank, LocalRank: a.LocalRank, Ranks: 1}
	if a.seat.Slots > 0 {
		v.Rank, v.LocalRank, v.Ranks = a.seat.Rank, a.seat.LocalRank, a.seat.Slots
	}
	return v
}

// nameOf names an agent for people.
func (l *Leader) nameOf(a *memberState) string {
	v := l.lostVerdict(a)
	return v.agentName()
}
