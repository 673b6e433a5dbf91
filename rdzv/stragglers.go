package rdzv

import (
	"context"
	"slices"
	"time"
)

// readProgress handles which workers of an agent have ended. It ignores a value that cannot
// be decoded, because the agent's outcome decides.
func (l *Leader) readProgress(id string, value []byte) {
	m := l.members[id]
	o, err := decode[Outcome](value)
	if m == nil || err != nil {
		return
	}
	m.ended = o.Workers
	l.noteSuccess(o.Workers)
}

// noteSuccess starts the timers when the first worker has succeeded.
func (l *Leader) noteSuccess(workers []Worker) {
	i := slices.IndexFunc(workers, Worker.ok)
	if i < 0 || l.firstSuccess != nil || l.verdict != nil {
		return
	}
	l.firstSuccess = &workers[i]
	l.reportTime = time.After(l.config.stragglingAfter)
	if l.config.ExitTimeout > 0 {
		l.exitTimeout = time.After(l.config.ExitTimeout)
	}
}

func (l *Leader) reportStragglers() {
	if l.config.Straggling == nil || l.verdict != nil {
		return
	}
	if s := l.stragglers(l.config.stragglingAfter); len(s.Running) > 0 {
		l.config.Straggling(s)
	}
}

func (l *Leader) stopStragglers(ctx context.Context) error {
	s := l.stragglers(l.config.ExitTimeout)
	if len(s.Running) == 0 {
		return nil // the last outcomes are being written
	}
	v := verdictOf(Straggling)
	v.Stragglers = &s
	return l.writeVerdict(ctx, v)
}

func (l *Leader) stragglers(after time.Duration) Stragglers {
	var running []Straggler
	for _, m := range l.joined {
		if m.settled || m.lost {
			continue
		}
		for rank := m.seat.Rank; rank < m.seat.Rank+m.Slots; rank++ {
			if !slices.ContainsFunc(m.ended, func(w Worker) bool { return w.Rank == rank }) {
				running = append(running, Straggler{rank, m.Host})
			}
		}
	}
	s := Stragglers{First: l.firstSuccess.Rank, After: after}
	s.Running, s.More = cut(running)
	return s
}
