package rdzv

import (
	"context"
	"fmt"
	"time"
)

// absence is what the leader knows of a rank 0 that does not listen on MASTER_PORT.
type absence struct {
	rank0    *Unreached // nil until its agent has said so
	since    time.Time  // when the first of the others has begun to try to connect
	reported bool
}

// connecting is the value of connecting/ID: how many workers of the agent have been trying to
// connect to rank 0, all for that long.
type connecting struct {
	Ranks int           `json:"ranks"`
	For   time.Duration `json:"for"`

	since time.Time // by the leader's clock
}

// readAbsent handles that rank 0 does not listen. Like readReached it ignores what it cannot read.
func (l *Leader) readAbsent(value []byte) {
	if u, err := decode[Unreached](value); err == nil {
		l.init.absence.rank0 = &u
	}
}

// readConnecting handles how many workers of an agent try to connect to rank 0.
func (l *Leader) readConnecting(id string, value []byte) {
	m := l.members[id]
	c, err := decode[connecting](value)
	if m == nil || err != nil || l.config.Init == nil || l.verdict != nil {
		return
	}
	c.since = time.Now().Add(-c.For)
	m.connects = &c
	if l.init.begin.IsZero() && l.init.report == nil {
		l.init.absence.since, l.init.times = c.since, l.config.initTimes.report
		l.init.report = time.After(time.Until(c.since.Add(l.init.times[0])))
	}
}

// reportAbsence reports that rank 0 does not listen, if others still try to connect.
func (l *Leader) reportAbsence(ctx context.Context) error {
	p := InitProgress{Absent: true}
	for _, m := range l.joined {
		p.Ranks += m.seat.Slots
		if c := m.connects; c != nil && c.Ranks > 0 && !m.settled && !m.lost {
			waited := time.Since(c.since)
			if p.Reached == 0 || waited < p.Waited {
				p.Waited = waited
			}
			p.Reached += c.Ranks
		}
		if m.seat.Rank == 0 && m.seat.Slots > 0 {
			p.Host, p.Missing = m.Host, []NodeRanks{{m.Host, "0"}}
		}
	}
	if p.Reached == 0 || l.init.absence.rank0 == nil {
		l.init.report = nil // until others try again
		return nil
	}
	l.nextReport(l.init.absence.since)
	p.First = *l.init.absence.rank0
	l.init.absence.reported = true
	return l.tell(ctx, p)
}

// Absent tells all agents that rank 0 does not listen on MASTER_PORT although it has run for some
// time. Only its agent calls it. python is Unreached.Python of rank 0.
func (s *Session) Absent(ctx context.Context, python int) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	value := encode(Unreached{Rank: 0, Python: python})
	if err := s.put(ctx, s.keys.absent(), value, s.registration.jobLease); err != nil {
		return fmt.Errorf("cannot write that rank 0 does not listen: %w", err)
	}
	return nil
}

// Rank0Absent returns a channel that is closed when rank 0's agent has called Absent. The agents
// then call Connecting when workers of theirs try to connect to rank 0.
func (s *Session) Rank0Absent() <-chan struct{} { return s.haveAbsent }

// Connecting publishes how many workers of this agent have been trying to connect to rank 0, and
// for how long all of them have.
func (s *Session) Connecting(ctx context.Context, ranks int, waited time.Duration) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	value := encode(connecting{Ranks: ranks, For: waited})
	key := s.keys.connecting(s.config.Self.ID)
	if err := s.put(ctx, key, value, s.registration.lease); err != nil {
		return fmt.Errorf("cannot write how many workers try to connect to rank 0: %w", err)
	}
	return nil
}

// maxProgress is how many reports wait for InitProgress.
const maxProgress = 8

// InitProgress delivers what the leader reports about init_process_group, see LeaderConfig.Init.
func (s *Session) InitProgress() <-chan InitProgress { return s.progress }

// takeProgress notes a report. It ignores one that it cannot read, and more if nobody receives
// them.
func (s *Session) takeProgress(value []byte) {
	if p, err := decode[InitProgress](value); err == nil {
		select {
		case s.progress <- p:
		default:
		}
	}
}
