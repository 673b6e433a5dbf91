package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"

	"rdzv/internal/procfs"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/devicefiles"
	"rdzv/rdzv/agent/internal/health"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/launcher"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/rdzv/masterport"
	"rdzv/wrap"
)

// closeLimit is how long after the end of an attempt the next one waits for device files.
const closeLimit = 30 * time.Second

// awaitClosed waits until processes of the old workers that could not be killed have closed the
// files of their devices.
func awaitClosed(ctx context.Context, events *reporter, pids []int) {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	devicefiles.AwaitClosed(ctx, procfs.System, pids, func(pid int, file string) {
		events.diagnose(Warning, fmt.Errorf("waiting up to %v for pid %d on %s to close %s",
			closeLimit, pid, host.Name(), file))
	})
}

// survivors are the processes that could not be killed, according to the error of wrap.Run.
func survivors(err error) (pids []int) {
	all, _ := errors.AsType[*multierror.Error](err)
	for _, e := range all.WrappedErrors() {
		if s, ok := errors.AsType[*wrap.SurvivorError](e); ok {
			pids = append(pids, s.PID)
		}
	}
	return pids
}

// useMPI tells whether workers that run are programs of Open MPI: connected to the launcher's PMIx
// server. If such a program ends without MPI_Finalize, MPI_Init of the next one in the same task
// hangs.
func (w *workers) useMPI() bool {
	port := launcher.PMIxPort(w.local.env)
	if w.world.MaxRestarts == 0 || port == 0 || w.local.OwnTasks {
		return false
	}
	pids := tally.PIDs(w.tally.Running())
	return slices.Contains(masterport.Reached(procfs.System, port, pids), true)
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
