package agent

import (
	"context"
	"errors"
	"syscall"
	"time"

	"rdzv/rdzv"
	"rdzv/wrap"
)

// sameSignal is how soon after another agent has withdrawn SIGTERM at this one is taken for a
// signal to all of them, which ends the job.
const sameSignal = time.Second

// endSession writes to the store that the first signal has ended the job, or that this agent leaves
// it.
func (in *interrupts) endSession() {
	end := in.ending(*in.first)
	in.write(func(ctx context.Context) { _ = end(ctx) })
}

// ending returns what writes to the store that a signal to this agent ends the session: SIGTERM to
// a single agent only makes that one withdraw.
func (in *interrupts) ending(e wrap.Event) func(context.Context) error {
	s := in.session
	if in.byCaller {
		s.ByCaller()
	}
	in.noteOther()
	if isForAll(e, in.other) {
		return func(ctx context.Context) error { return s.End(ctx, int(e.Signal), e.Shared) }
	}
	return func(ctx context.Context) error { return s.Withdraw(ctx, e.Shared) }
}

// isForAll tells whether a signal ends the job; other is when another agent has withdrawn, zero if
// none has.
func isForAll(e wrap.Event, other time.Time) bool {
	soon := !other.IsZero() && e.At.Before(other.Add(sameSignal))
	return e.Signal != syscall.SIGTERM || soon
}

// noteOther notes when another agent has withdrawn from the session, if one has.
func (in *interrupts) noteOther() {
	if in.session == nil {
		return
	}
	if at := in.session.OtherWithdrew(); !at.IsZero() {
		in.other = at
	}
}

// endByGroup returns what writes to the store that a signal to the process group has ended a
// worker.
func (in *interrupts) endByGroup(signal syscall.Signal) func(context.Context) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ending(wrap.Event{Signal: signal, Shared: true, At: time.Now()})
}

// How much later than another agent this one may get a signal that a launcher sends to all: on a
// busy machine more than 200 ms were seen with Open MPI 5. If the workers of the other agent did
// not get it, the launcher has probably not sent it.
const (
	ownWait       = 200 * time.Millisecond
	ownWaitShared = time.Second
)

// awaitOwn waits, a little, until all tasks of this agent have received their signals. A dead
// launcher sends none, nor does the caller of this agent. shared says that the workers of the agent
// that ended the job have received the signal too.
func (in *interrupts) awaitOwn(shared bool) {
	in.mu.Lock()
	byCaller := in.byCaller
	in.mu.Unlock()
	if byCaller {
		return
	}
	wait := ownWait
	if shared {
		wait = ownWaitShared
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-in.received.Done():
	case <-late.C:
	}
}

// lose ends the job, or the joining, because the launcher or a task of this agent has died. While
// workers run, the end of those of a task is reported by itself; the job does not need a spare.
func (in *interrupts) lose(gone error, final bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.gone != nil && !final {
		return
	}
	in.gone, in.final = gone, final
	in.noMore()
	if in.interrupt(gone); in.session != nil && (final || !in.runs.Load() && !in.spare.Load()) {
		in.loseSession()
	}
}

// loseSession writes to the store what has died.
func (in *interrupts) loseSession() {
	s, why, final := in.session, in.gone.Error(), in.final
	in.write(func(ctx context.Context) { s.ReportLoss(ctx, why, final) })
}

// lostTask is why this agent cannot take part in another attempt; nil if it can.
func lostTask(in *interrupts) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if lost, is := errors.AsType[*TaskLostError](in.gone); is {
		return lost
	}
	return nil
}

// vanishes tells whether this agent, whose workers have ended, disconnects without having settled,
// because it has lost a task: another agent can then take its place in the next attempt. It waits
// for the end of the present one.
func (m *membership) vanishes(in *interrupts) bool {
	if lostTask(in) == nil || m.conn.hosting() {
		return false
	}
	<-m.session.Context().Done()
	return m.attempt().mayRestart(m.session.Verdict())
}

// waitAsSpare waits for the end of the attempt. A spare that loses a task disconnects.
func waitAsSpare(m *membership, in *interrupts) {
	in.spare.Store(true)
	defer in.spare.Store(false)
	select {
	case <-m.reported:
	case <-in.interrupted.Done():
		if lostTask(in) != nil {
			m.conn.leaveStore()
		}
		<-m.reported
	}
}

// stopJob ends the job because its user has asked this agent for it; by says how, for all nodes. It
// ends a later attempt too, if the present one ends for another reason.
func (in *interrupts) stopJob(by string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped != "" {
		return
	}
	in.stopped = by
	in.noMore()
	in.interrupt(&SignalError{Signal: syscall.SIGTERM, By: by})
	if in.session != nil {
		in.stopSession()
	}
}

func (in *interrupts) stopSession() {
	s, by := in.session, in.stopped
	in.write(func(ctx context.Context) { _ = s.Stop(ctx, by) })
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
