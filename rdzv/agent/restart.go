package agent

import (
	"context"
	"fmt"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/health"
	"rdzv/rdzv/agent/internal/host"
)

// The health command decides whether this node takes part in an attempt. One agent of each node
// runs it, while the others join. If it fails the node is lost to the job: a spare takes its place,
// or the attempt ends for that reason.

// checkHealth begins to run the health command; nil if there is none to run.
func (l *Local) checkHealth() *health.Check {
	c := l.Config
	if c.HealthCmd == "" || c.Check != nil || !l.FirstOfNode() {
		return nil
	}
	return health.Start(c.HealthTimeout, c.HealthCmd, c.Environ)
}

// awaitHealth waits for the result of the health command, until the attempt ends. It is false if
// this node does not take part: the attempt has ended then.
func (m *membership) awaitHealth() bool {
	ended := m.session.Context()
	if m.world.Seat.Spare {
		return true
	}
	err := m.health.Await(ended)
	if err == nil {
		return true
	}
	seat := m.world.Seat
	text := fmt.Sprintf("%s (rank %d) cannot take part: %v", host.Name(), seat.First(), err)
	final := m.conn.hosting() // nobody can take the place of the store
	m.events.write(func(ctx context.Context) error { return m.session.ReportLoss(ctx, text, final) })
	<-ended.Done()
	return false
}

// leavesUnhealthy tells whether this agent vanishes from the job, so that another one can take its
// place, because the attempt has ended for what awaitHealth has reported.
func (m *membership) leavesUnhealthy() bool {
	v := m.session.Verdict()
	own := v != nil && v.Kind == rdzv.Lost && v.By == m.self.ID
	return own && m.attempt().mayRestart(v)
}
