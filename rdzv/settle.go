package rdzv

import (
	"context"
	"fmt"
)

// settle takes in how an agent's workers ended. An outcome with a failure that
// no verdict preceded is the verdict: its agent could not say it itself.
func (l *Leader) settle(ctx context.Context, id, key string, value []byte) error {
	a := l.agents[id]
	if a == nil || a.settled {
		return nil
	}
	a.settled = true
	if !a.lost {
		l.open--
	}
	o, err := decode[Outcome](key, value)
	if err != nil {
		v := l.lossOf(a)
		v.Text += fmt.Sprintf(", whose last word was not understood (%v)", err)
		return l.say(ctx, v)
	}
	l.outcomes = append(l.outcomes, o)
	return l.judge(ctx, a, o)
}

// judge says what an agent's outcome means for a job that has no verdict yet.
func (l *Leader) judge(ctx context.Context, a *agent, o Outcome) error {
	if w, failed := o.failed(); failed {
		return l.say(ctx, failure(a.ID, o.Host, w))
	}
	if len(o.Workers) < a.Slots {
		return l.say(ctx, unready(Problem{Text: fmt.Sprintf("%s gave up: it ran %d of its %d workers", l.nameOf(a), len(o.Workers), a.Slots)}))
	}
	if l.begun && l.open == 0 {
		return l.say(ctx, Verdict{Kind: Done, Rank: Any, LocalRank: Any})
	}
	l.endedWell(o.Workers)
	return nil
}

// lose takes in that an agent is gone. What it has said before is in the store,
// though it may not have been seen here: an agent that settled is not lost.
func (l *Leader) lose(ctx context.Context, id string) error {
	a := l.agents[id]
	switch {
	case a == nil && l.begun:
		return nil // one too many
	case a == nil:
		l.early[id] = true
		v := Verdict{Kind: Lost, By: id, Rank: Any, LocalRank: Any, Text: "lost an agent that had just come in: it went without a word"}
		return l.say(ctx, v, l.keys.member(id))
	case a.settled || a.lost:
		return nil
	}
	a.lost = true
	l.open--
	return l.say(ctx, l.lossOf(a), l.keys.outcome(id))
}

// lossOf is the verdict on an agent that went without a word.
func (l *Leader) lossOf(a *agent) Verdict {
	v := Verdict{Kind: Lost, By: a.ID, Host: a.Host, PID: a.PID, Rank: a.Rank, LocalRank: a.LocalRank, Text: "lost " + l.nameOf(a) + ": it went without a word"}
	if l.seated(a) {
		v.Rank, v.LocalRank = a.seat.Rank, a.seat.LocalRank
	}
	return v
}

func (l *Leader) seated(a *agent) bool { return a.seat.Slots > 0 }

// nameOf names an agent for people.
func (l *Leader) nameOf(a *agent) string {
	what := "an agent"
	switch {
	case l.seated(a):
		what = "the agent of " + span(a.seat.Rank, a.Slots)
	case a.Rank != Any:
		what = "the agent of " + span(a.Rank, 1)
	}
	return fmt.Sprintf("%s (%s)", what, name(a.Member))
}

// span names n ranks from first on.
func span(first, n int) string {
	if n == 1 {
		return fmt.Sprintf("rank %d", first)
	}
	return fmt.Sprintf("ranks %d to %d", first, first+n-1)
}

// unsettled names the agents that have said nothing, though they are not lost.
func (l *Leader) unsettled() string {
	var silent []*agent
	for _, a := range l.order {
		if !a.settled && !a.lost {
			silent = append(silent, a)
		}
	}
	return some(silent, l.nameOf)
}
