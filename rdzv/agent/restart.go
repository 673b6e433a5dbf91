package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"

	"rdzv/envmap"
	"rdzv/internal/procfs"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/devicefiles"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/launcher"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/rdzv/masterport"
	"rdzv/rdzv/restart"
	"rdzv/wrap"
)

// rejoin makes this agent a member of the next attempt, in the same store, and waits for its world.
// Its workers have ended.
func (m *membership) rejoin(in *interrupts) error {
	m.joinBy = m.local.Config.joinBy(m.local.waited)
	old := m.port
	if m.local.Config.MasterPort == 0 {
		m.port = nil
	}
	id := m.self.ID
	m.self = m.describe()
	m.self.ID = id
	if old != nil && m.port != old {
		old.Close() // not before: the new port is another one
	}
	session, err := m.session.Next(context.Background(), m.self, m.joinBy)
	if err != nil {
		return err
	}
	m.session, m.later = session, true
	in.joined(session)
	m.observed.joined(m.self.ID, session)
	m.awaitWorld(in.interrupted, func() {})
	return nil
}

// mayRestart tells whether another attempt may follow how this one has ended. The leader decides.
func (m *membership) mayRestart(v *rdzv.Verdict) bool {
	return v != nil && v.MayRestart() && m.world.Attempt < m.world.MaxRestarts
}

// reportEnd reports the end of the job, or of an attempt that another one may follow, or whose
// reason is known only when all have settled.
func (m *membership) reportEnd() {
	end := m.jobEnded()
	if end.Verdict == nil && errors.Is(context.Cause(m.session.Context()), rdzv.ErrWithdrawn) {
		return // only for this agent
	}
	if !m.mayRestart(end.Verdict) && !m.session.MayBeConsequence() {
		m.events.send(end)
		return
	}
	m.events.send(m.attemptFailed(end.Verdict))
}

func (m *membership) attemptFailed(v *rdzv.Verdict) AttemptFailed {
	e := AttemptFailed{
		Attempt: m.world.Attempt, Verdict: v, Own: v.By == m.self.ID, Announce: m.announces(v),
		MayBeConsequence: v.Kind == rdzv.Failed && m.session.MayBeConsequence(),
	}
	if m.mayRestart(v) {
		e.Announce = m.announcesRestart()
	}
	return e
}

// notRestarted is the event of the job's end after an attempt that might have been followed by
// another one.
func (m *membership) notRestarted(reason restart.Reason) JobEnded {
	e := m.jobEnded()
	if e.Verdict.Kind != rdzv.Lost && e.Verdict.Kind != rdzv.Stalled {
		return e // FailureReported has the reason
	}
	e.Attempt = m.world.Attempt
	if e.NoRestart = reason; reason == restart.Lost {
		e.Hint = m.local.layout().NotReplaced(m.conn.shared())
	}
	return e
}

func (m *membership) restarting(r rdzv.Restart) Restarting {
	return Restarting{
		Attempt: r.Attempt, MaxRestarts: m.world.MaxRestarts, Delay: r.Delay, Vacant: r.Vacant,
		Missing: r.Missing, Announce: m.announcesRestart(),
	}
}

// announcesRestart tells whether this agent tells the user that an attempt has failed and another
// one follows. Under a launcher, whose output is that of all agents, the one that leads the job
// does.
func (m *membership) announcesRestart() bool {
	return m.local.Placement.Launcher == envmap.None || m.session.Leads()
}

// closeLimit is how long after the end of an attempt the next one waits for device files.
const closeLimit = 30 * time.Second

// awaitClosed waits until processes of the old workers that could not be killed have closed the
// files of their devices.
func (m *membership) awaitClosed(ctx context.Context, pids []int) {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	devicefiles.AwaitClosed(ctx, procfs.System, pids, func(pid int, file string) {
		m.events.diagnose(Warning, fmt.Errorf("waiting up to %v for pid %d on %s to close %s",
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
