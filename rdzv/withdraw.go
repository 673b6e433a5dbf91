package rdzv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrWithdrawn is the cause of the end of [Session.Context], and returned by [Session.Leave], if
// this agent has left the job, which goes on, when it ran no workers, see [Session.Withdraw].
var ErrWithdrawn = errors.New("this agent has left the job, which goes on without it")

// withdrawnSeat is that of an agent that has withdrawn before it got one.
var withdrawnSeat = spareSeat

// Withdraw makes this agent leave the job because it has received SIGTERM: its node is about to
// stop. shared is as in End. If others can take its place, or it can be started again, the
// attempt ends, and the next one is without this agent; one without workers leaves as soon as
// the leader knows. If they cannot, it ends the job as End does: before the first world, without
// a spare or another attempt, or if it hosts the store. If the attempt has ended for another
// reason the agent can withdraw from the next one.
func (s *Session) Withdraw(ctx context.Context, shared bool) error {
	if s.Verdict() != nil {
		return nil
	}
	v := s.verdictOf(Ended)
	v.Signal, v.Shared, v.Caller = int(syscall.SIGTERM), shared, s.caller.Load()
	switch seat := s.seat.Load(); {
	case s.config.Self.Hosting && s.survivesLoss():
		v.Text = "this agent hosts the store"
	case s.config.Self.Hosting:
	case seat != nil && seat.Spare,
		s.survivesLoss() && s.seat.CompareAndSwap(nil, &withdrawnSeat):
		return s.withdrawIdle(ctx)
	default:
		v.Withdrawn = s.survivesLoss()
	}
	return s.end(ctx, v)
}

// survivesLoss tells whether the job may go on without one of its agents, as far as this one knows.
// The leader decides.
func (s *Session) survivesLoss() bool {
	w := s.world.Load()
	if w == nil { // between two attempts
		return s.config.Attempt > 0
	}
	return w.Attempt < w.MaxRestarts && (len(w.Spares) > 0 || w.MaxAgents > 0 || w.Replaceable)
}

// withdrawIdle withdraws an agent that runs no workers. It stays until the leader, which may be
// lost at this moment, has decided: that the job goes on without it, or by a verdict.
func (s *Session) withdrawIdle(ctx context.Context) error {
	o := newOutcome(s.config.Self.Host, nil)
	o.Withdrawn = true
	return s.putOutcome(ctx, s.keys.outcome(s.config.Self.ID), o, s.registration.jobLease)
}

// left handles that the leader has let this agent leave the job.
func (s *Session) left() {
	s.withdrawn.Store(true)
	s.cancel(ErrWithdrawn)
}

// end writes a verdict after a signal. If another agent has withdrawn first, the outcome of this
// one tells the leader that the signal was for all.
func (s *Session) end(ctx context.Context, v Verdict) error {
	s.ending.Store(true)
	return s.endWith(ctx, v)
}

// OtherWithdrew returns when this agent learned that the attempt has ended because another agent
// withdraws; zero if it has not.
func (s *Session) OtherWithdrew() (at time.Time) {
	if v := s.Verdict(); v != nil && v.Withdrawn && v.By != s.config.Self.ID {
		at = *s.verdictAt.Load()
	}
	return at
}

// withdraw handles that an agent without workers is to leave: a spare, or an agent in a later
// attempt whose workers have not started. If there is a verdict, the agent will know that one.
func (l *Leader) withdraw(ctx context.Context, id string) error {
	m := l.members[id]
	switch {
	case l.verdict != nil, m != nil && m.lost:
		return nil
	case m == nil: // it waits for the place of a lost one
		l.gone[id] = true
		l.unseated = slices.DeleteFunc(l.unseated, func(m Member) bool { return m.ID == id })
		_, err := l.letLeave(ctx, id)
		return err
	}
	goesOn := l.goesOnWithout(m)
	if m.seat.Spare || goesOn && !l.complete {
		left, err := l.letLeave(ctx, id)
		if err != nil || !left {
			return err
		}
		m.withdrawn = true
		return l.markLost(ctx, id)
	}
	v := m.lostVerdict()
	v.Kind, v.Signal, v.Withdrawn = Ended, int(syscall.SIGTERM), goesOn
	written, err := l.endWith(ctx, v)
	if err != nil || !written {
		return err
	}
	if !m.settled { // its workers were not started
		m.settled = true
		l.pending--
	}
	m.withdrawn, m.lost, l.gone[id] = true, true, true
	return nil
}

// letLeave tells an agent that it has left the job, unless there is a verdict. It reports whether
// it has.
func (l *Leader) letLeave(ctx context.Context, id string) (bool, error) {
	noVerdict := []clientv3.Cmp{absent(l.keys.verdict())}
	done, err := l.commitIf(ctx, noVerdict, l.put(l.keys.left(id), encode(true)))
	if err != nil {
		err = fmt.Errorf("cannot let agent %q leave job %q: %w", id, l.config.Job, err)
	}
	return done, err
}

// hasLeft tells whether an agent has left the job in this attempt or in the one before.
func (l *Leader) hasLeft(id string, values map[string][]byte) bool {
	_, now := values[l.keys.left(id)]
	_, before := values[l.previous.left(id)]
	return now || before
}

// goesOnWithout tells whether the job goes on if the agent withdraws: at once with a spare or fewer
// agents, otherwise when the agent has been started again, or another one in its place.
func (l *Leader) goesOnWithout(m *memberState) bool {
	switch {
	case m.seat.Spare:
		return true
	case l.elastic():
		return l.left() > l.config.MinAgents
	}
	return l.mayReplace(m)
}

// release gives up the agent that has ended this attempt by withdrawing, like one that is lost, if
// its workers have ended and the job goes on without it. It reports whether it has. If another
// agent has received a signal meanwhile, that was for all.
func (l *Leader) release() bool {
	m := l.members[l.verdict.By]
	forAll := func(other *memberState) bool { return other.ending && other != m }
	switch {
	case m == nil, slices.ContainsFunc(l.joined, forAll):
		return false
	case m.lost: // when it had written the verdict
		return true
	case !m.settled, !l.goesOnWithout(m):
		return false
	}
	m.lost, m.withdrawn, l.gone[m.ID] = true, true, true
	return true
}

// loss says for people that the agent is not a member any more.
func (m *memberState) loss() error {
	v := m.lostVerdict()
	if m.withdrawn {
		v.Kind, v.Withdrawn = Ended, true
	}
	return &v
}

// reason says why the agent is not a member any more.
func (m *memberState) reason() string {
	if m.withdrawn {
		return "it received SIGTERM"
	}
	return howLost(m.silent)
}
