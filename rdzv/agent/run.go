package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/ending"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/launcher"
	"rdzv/rdzv/agent/internal/overlap"
	"rdzv/rdzv/status"
)

// ErrRunning is returned by [Run] if another Run has not returned: both would act on the signals of
// this process.
var ErrRunning = errors.New("cannot run an agent: another one runs in this process")

var running atomic.Bool // whether there is a Run in this process

// Run plans an agent and runs it, see [Place] and [Local.Run].
func Run(ctx context.Context, c Config) (Result, error) {
	l, err := Place(c)
	if err != nil {
		return Result{}, err
	}
	return l.Run(ctx)
}

// Run meets the other agents, runs the workers in the agreed world, and returns how the job ended
// when all agents have settled. If ctx ends, the job is stopped, or this agent leaves it, as by
// SIGTERM. A cause of its end that is a *[LauncherDiedError] ends the job as the death of a
// launcher does.
//
// It returns an error if this agent never ran workers of a job: *[JoinTimeoutError] if the others
// were not found in time, *[SignalError], *[LauncherDiedError] or *[TaskLostError] if that ended
// the search, [ErrRunning] while another Run has not returned, else the error of this agent itself.
// It also returns a *[TaskLostError] if the job goes on without this agent.
func (l *Local) Run(ctx context.Context) (Result, error) {
	if len(l.Config.Program) == 0 && l.Config.Check == nil {
		return Result{}, errors.New("cannot run an agent: Config.Program is empty")
	}
	if !running.CompareAndSwap(false, true) {
		return Result{}, ErrRunning
	}
	defer running.Store(false)
	events := &reporter{events: l.Config.Events}
	r, err := l.run(ctx, events)
	end := Finished{ExitCode: ExitCode(r, err), Err: err, Hint: Hint(err)}
	if err != nil {
		end.Text = err.Error()
	}
	events.send(end)
	return r, err
}

func (l *Local) run(ctx context.Context, events *reporter) (Result, error) {
	joinBy := l.Config.joinBy()
	by := l.Placement.Launcher
	if l.Config.Check == nil {
		l.runner.start() // while this agent joins, and before it catches signals
		defer l.runner.close()
	}
	in := listen(ctx, joinBy, launcher.Signalled(by, l.env, os.Getpid()),
		launcher.KillDelay(by, l.env), l.tasks)
	defer in.close()
	defer launcher.Watch(by, func(name string, pid int) {
		in.lose(&LauncherDiedError{name, pid, host.Name()}, true)
	})()

	m := &membership{local: l, events: events, joinBy: joinBy}
	m.observed = observe(l, events, in.stopJob)
	defer m.observed.close()
	if err := l.examine(in.joining, events); err != nil {
		return Result{}, l.notJoined(err)
	}
	introduce(l, events)
	m.conn = &connection{local: l, events: events}
	if l.Config.Check != nil {
		m.checking = newChecking(m)
		defer m.checking.close()
	}
	m.health = l.checkHealth()
	defer func() { m.health.Stop() }()
	if err := m.join(in); err != nil {
		return Result{}, l.notJoined(err)
	}
	defer m.conn.close()
	defer m.port.Release()
	for {
		w := m.work(in)
		r, again, err := m.leave(w)
		if !again {
			return r, err
		}
		if err := lostTask(in); err != nil {
			m.vanish() // another agent can take its place
			return Result{}, err
		}
		awaitClosed(in.interrupted, events, w.left)
		m.health.Stop()
		m.health = l.checkHealth()
		if err := m.rejoin(in); err != nil {
			return Result{}, err
		}
	}
}

// introduce reports what this agent knows before it looks for the others.
func introduce(l *Local, events *reporter) {
	p := l.Placement
	if l.FirstOfJob() { // the other agents would report the same
		for _, ignored := range l.IgnoredFlags() {
			events.send(ignored)
		}
		if err := checkAllocation(l); err != nil {
			events.diagnose(Warning, err)
		}
		for _, variables := range p.Lacking {
			events.send(EnvironmentNote{Text: "ignoring " + variables, Verbose: true})
		}
		if note := l.idleDevices(); note != "" {
			events.send(EnvironmentNote{Text: note})
		}
		if l.Config.Insecure {
			events.send(Unprotected{})
		}
		if e := l.Config.Etcd; e.Given() && !e.Protected() {
			events.diagnose(Warning, fmt.Errorf("connections to etcd at %v are not encrypted: "+
				"use https:// unless you trust the network", e))
		}
	}
	events.send(Placed{
		Host: host.Name(), PID: os.Getpid(), Launcher: p.Launcher, Job: l.Job,
		Agents: l.Agents, Rank: p.Rank, Size: p.Size, Workers: l.all().workers(),
		Others: l.all().others(),
	})
	notePreview(l, events)
}

// work runs the workers until the attempt has ended, unless it ends before they begin. The end is
// reported as soon as it is known here.
func (m *membership) work(in *interrupts) *workers {
	w := m.workers(in)
	if m.worldErr != nil {
		m.observed.ends(m.session, m.worldErr)
		goesOn := errors.Is(m.worldErr, rdzv.ErrFull) || errors.Is(m.worldErr, rdzv.ErrWithdrawn)
		switch {
		case goesOn: // without this agent
		case m.leaves():
			m.reportEnd()
			m.settle(nil)
		default:
			m.events.send(m.attempt().jobEnded())
			v, ok := errors.AsType[*rdzv.Verdict](m.worldErr)
			if m.checking != nil && ok && (v.Kind == rdzv.Incomplete || v.Kind == rdzv.Unready) {
				m.checking.run(in.interrupted, v)
			}
			m.settle(nil)
		}
		return w
	}
	if m.world.Seat.Spare {
		m.observed.enter(status.Spare)
	} else {
		m.observed.runs(w)
	}
	m.reported = make(chan struct{})
	context.AfterFunc(m.session.Context(), func() {
		defer close(m.reported)
		m.observed.ends(w.session, context.Cause(w.session.Context()))
		m.reportEnd()
	})
	if m.world.Seat.Spare {
		waitAsSpare(m, in)
		return w
	}
	if m.checking != nil {
		m.checking.run(m.session.Context(), nil)
		m.settle(m.checking.workers())
		<-m.reported
		return w
	}
	w.settled = w.reportSettling(m.reported)
	if !m.awaitHealth() {
		<-m.reported
		if m.leavesUnhealthy() {
			m.vanish()
		} else {
			m.settle(nil)
		}
		return w
	}
	err := w.run()
	if w.vanishes {
		m.vanish() // not before, because processes of the workers may have run until now
	}
	w.left = survivors(err)
	if m.world.MaxRestarts == 0 {
		m.port.Release() // otherwise the next attempt must get another one
	}
	<-m.reported
	return w
}

// workers are those of the attempt whose world is agreed, or failed to be.
func (m *membership) workers(in *interrupts) *workers {
	l := m.local
	w := &workers{
		local: l, events: m.events, session: m.session, world: m.world, id: m.self.ID,
		addr: m.conn.addr, dir: m.conn.dir, in: in, awaitReported: m.awaitReported,
		hosting: m.conn.hosting(), unready: m.unready,
		measures: m.observed.measures, output: outputOf(l, m.events, m.world),
		endings: make([]ending.Ending, l.all().workers()), settled: func() {},
	}
	w.settle = func(list []rdzv.Worker) {
		if w.vanishes = m.vanishes(in); !w.vanishes {
			m.settle(list, w.details(list)...)
		}
	}
	w.setup, w.base = l.setup, l.Config.Environ
	for _, t := range l.all() {
		w.devices = append(w.devices, t.Devices)
	}
	w.lease = overlap.Lease{
		Lease: &m.lease, World: m.world, ID: m.self.ID, Grace: l.Config.Grace,
	}
	w.tally.Number, w.tally.Settle, w.tally.Progress = l.all().workers(), w.allEnded, w.someEnded
	return w
}

// reportEnd reports the end of the job, or of an attempt.
func (m *membership) reportEnd() {
	if e := m.attempt().end(); e != nil {
		m.events.send(e)
	}
}

// leave waits until all agents have settled, and returns how the job ended, or that they form
// another attempt.
func (m *membership) leave(w *workers) (r Result, again bool, err error) {
	summary, err := m.session.Leave(context.Background())
	w.settled()
	unsure, a := m.session.MayBeConsequence(), m.attempt()
	if v := summary.Verdict; unsure && v.Kind == rdzv.Lost {
		m.events.send(a.failed(v))
	}
	switch {
	case summary.Withdrawn, errors.Is(err, rdzv.ErrWithdrawn):
		return m.withdrawn(summary, err)
	case summary.Restart != nil:
		m.observed.enter(status.Restarting)
		m.events.send(a.restarting(*summary.Restart))
		return Result{}, true, nil
	case errors.Is(err, rdzv.ErrFull):
		return Result{}, false, refused(err, m.local.Job)
	case err != nil && !errors.Is(err, rdzv.ErrStoreLost):
		m.events.diagnose(Verbose, err)
	}
	if (m.worldErr == nil || m.leaves()) && (unsure || a.mayRestart(m.session.Verdict())) {
		m.events.send(a.notRestarted(summary.NoRestart)) // only the attempt's end has been reported
	}
	if m.conn.hosting() {
		m.conn.hosted.ReadBy(summary)
	}
	r = Result{
		Job: m.local.Job, Summary: summary, World: m.world,
		Hosting: m.conn.hosting(), Leads: m.session.Leads(),
		StoreLost: errors.Is(err, rdzv.ErrStoreLost), Ended: a.jobEnded(),
		Ranks: timesOf(append(w.details(nil), summary.Details...)),
	}
	if a.announcer().Failure(summary, r.StoreLost) {
		r.Failure = a.failure(summary, w)
		m.events.send(FailureReported{*r.Failure})
	}
	return r, false, nil
}
