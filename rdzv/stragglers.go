package rdzv

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Stragglers are the workers that still run long after another one succeeded.
type Stragglers struct {
	First   int           `json:"first"`   // rank that succeeded first
	After   time.Duration `json:"after"`   // how long ago
	Running []Straggler   `json:"running"` // at most 8, in the order in which their agents joined
	More    int           `json:"more,omitempty"`
}

// Straggler is a rank that still runs, and its node.
type Straggler struct {
	Rank int    `json:"rank"`
	Host string `json:"host"`
}

func (s Straggler) String() string { return fmt.Sprintf("%d (%s)", s.Rank, s.Host) }

// String returns a line for people: "ranks 1 (node1), 3 (node2) are still running 10s
// after rank 0 succeeded".
func (s Stragglers) String() string {
	verb := "are"
	if len(s.Running)+s.More == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s %s still running %v after rank %d succeeded", s.Names(), verb, s.After, s.First)
}

// Names returns the ranks that still run, for people: "rank 1 on node1", "ranks 1 (node1), 3
// (node2)".
func (s Stragglers) Names() string {
	if len(s.Running) == 1 && s.More == 0 {
		return fmt.Sprintf("rank %d on %s", s.Running[0].Rank, s.Running[0].Host)
	}
	return "ranks " + list(s.Running, s.More)
}

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
