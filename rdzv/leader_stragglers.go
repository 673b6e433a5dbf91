package rdzv

import (
	"context"
	"slices"
	"time"
)

// straggling is what the leader knows of workers that ended well while others run.
type straggling struct {
	first         *Worker          // to end well
	notice, limit <-chan time.Time // nil until there is a first, and once past
}

// readProgress takes in which workers of an agent have ended. What cannot be read is
// left out: the agent's outcome is what counts.
func (l *Leader) readProgress(id string, value []byte) {
	a := l.members[id]
	if a == nil {
		return
	}
	o, err := decode[Outcome](value)
	if err != nil {
		return
	}
	a.ended = o.Workers
	l.noteSuccess(o.Workers)
}

// noteSuccess starts the clock with the first worker that ended well.
func (l *Leader) noteSuccess(workers []Worker) {
	if l.straggling.first != nil || l.verdict != nil {
		return
	}
	for _, w := range workers {
		if !w.ok() {
			continue
		}
		l.straggling.first = &w
		l.straggling.notice = time.After(l.config.straggleNotice)
		if l.config.ExitTimeout > 0 {
			l.straggling.limit = time.After(l.config.ExitTimeout)
		}
		return
	}
}

func (l *Leader) reportStragglers() {
	if l.config.Straggling == nil || l.verdict != nil {
		return
	}
	if s := l.stragglers(l.config.straggleNotice); len(s.Running) > 0 {
		l.config.Straggling(s)
	}
}

func (l *Leader) stopStragglers(ctx context.Context) error {
	s := l.stragglers(l.config.ExitTimeout)
	if len(s.Running) == 0 {
		return nil // the last ones end this moment
	}
	v := verdictOf(Straggling)
	v.Stragglers = &s
	return l.writeVerdict(ctx, v)
}

func (l *Leader) stragglers(after time.Duration) Stragglers {
	var running []Straggler
	for _, a := range l.joined {
		if a.settled || a.lost {
			continue
		}
		for rank := a.seat.Rank; rank < a.seat.Rank+a.Slots; rank++ {
			if !slices.ContainsFunc(a.ended, func(w Worker) bool { return w.Rank == rank }) {
				running = append(running, Straggler{rank, a.Host})
			}
		}
	}
	s := Stragglers{First: l.straggling.first.Rank, After: after}
	s.Running, s.More = cut(running)
	return s
}
