package agent

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/health"
	"rdzv/rdzv/agent/internal/host"
)

// vanishes tells whether this agent, whose workers have ended, leaves without having settled,
// because it has lost a task: another agent can then take its place in the next attempt. It waits
// for the end of the present one.
func (m *membership) vanishes(in *interrupts) bool {
	if lostTask(in) == nil || m.conn.hosting() {
		return false
	}
	<-m.session.Context().Done()
	return m.attempt().mayRestart(m.session.Verdict())
}

// vanish makes this agent, of which no process runs, lost to a job that goes on.
func (m *membership) vanish() {
	if !m.conn.hosting() {
		m.session.Vanish()
	}
	m.conn.leaveStore()
}

// waitAsSpare waits for the end of the attempt. A spare that loses a task leaves.
func waitAsSpare(m *membership, in *interrupts) {
	in.spare.Store(true)
	defer in.spare.Store(false)
	select {
	case <-m.reported:
	case <-in.interrupted.Done():
		if lostTask(in) != nil {
			m.vanish()
		}
		<-m.reported
	}
}

// leaves tells whether this agent has ended an attempt, before its workers started, by leaving the
// job. Whether that goes on is decided later.
func (m *membership) leaves() bool {
	v, ok := errors.AsType[*rdzv.Verdict](m.worldErr)
	return ok && v.Withdrawn && v.By == m.self.ID
}

// withdrawn ends this agent's part in a job that goes on without it. It runs no workers any more;
// err is nil if it has run some in the last attempt.
func (m *membership) withdrawn(s rdzv.Summary, err error) (r Result, again bool, _ error) {
	m.conn.leaveStore() // there is no end to wait for
	// A node that leaves must not make the step of srun fail, which goes on without it.
	inStep, a := m.local.layout().KeepsSpares(), m.attempt()
	if err != nil {
		return r, false, &SignalError{Signal: syscall.SIGTERM, Withdrawn: true, InStep: inStep}
	}
	if inStep {
		s.Code = 0
	}
	m.events.send(Restarting{
		Restart:     rdzv.Restart{Attempt: s.Restart.Attempt, Delay: s.Restart.Delay},
		MaxRestarts: m.world.MaxRestarts, Withdrawn: true, Announce: a.announcer().Restart(),
	})
	return Result{Job: m.local.Job, Summary: s, World: m.world, Ended: a.jobEnded()}, false, nil
}

// The health command decides whether this node takes part in an attempt. One agent of each node
// runs it, while the others join. If it fails the node is lost to the job: a spare takes its place,
// or the attempt ends for that reason.

// checkHealth begins to run the health command; nil if there is none to run.
func (l *Local) checkHealth() *health.Check {
	c := l.Config
	if c.HealthCmd == "" || c.Check != nil || !l.FirstOfNode() {
		return nil
	}
	return health.Start(c.HealthTimeout, c.HealthCmd, l.setup.Variables())
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
