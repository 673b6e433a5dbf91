package rdzv

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/lease"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/internal/registration"
	"rdzv/rdzv/presence"
)

// target is an attempt to try, late or not.
type target struct {
	number int
	late   bool
}

// afterRefusal returns which attempt to try after this agent was refused: of another run that has
// begun, a later one, or the same if those who had the place of this agent were killed: their
// leases have expired then. Otherwise it returns why this agent cannot join.
func (e *entry) afterRefusal(ctx context.Context, refusal error) (target, error) {
	ctx, done := e.registration.Store.Until(ctx)
	defer done()
	_, isVersion := errors.AsType[*OtherVersionError](refusal)
	switch {
	case refusal == registration.ErrOtherRun:
		return e.replaceRun(ctx, 0)
	case !noPlace(refusal) && !isVersion:
		return target{}, refusal
	case !e.registration.Elects(), refusal == ErrFull && e.config.Lead.Replaces():
		return e.findLaterAttempt(ctx, refusal)
	}
	return e.awaitEnd(ctx, refusal)
}

// awaitEnd waits for the end of the agents in a store that no agent hosts which keep this one from
// the attempt, if they have been killed, and returns which one to try then.
func (e *entry) awaitEnd(ctx context.Context, refusal error) (target, error) {
	run, same := e.registration.Run, target{number: e.config.Attempt}
	occupied, isOccupied := errors.AsType[*OccupiedError](refusal)
	var holder clientv3.LeaseID
	if isOccupied {
		holder = occupied.lease
	} else if first, err := run.FirstLease(ctx); err != nil {
		return target{}, err
	} else if holder = first; holder == 0 {
		return e.replaceRun(ctx, 0)
	}
	waits := func(left time.Duration) { e.delayed(refusal, left) }
	ended, err := lease.Ends(ctx, e.registration.Store.Client, holder, waits)
	switch {
	case kv.Unavailable(err):
		return same, nil // for now
	case err == nil && !ended:
		return target{}, refusal
	case err == nil && (refusal == ErrClosed || refusal == ErrFull):
		return e.replaceRun(ctx, registration.AllReturnTime)
	}
	run.Again() // others may join that run
	return same, err
}

// replaceRun waits until no workers of the run that this agent has tried can run any more, so that
// Find replaces it, or until it must be tried again. Agents that are left have the time within to
// end the job.
func (e *entry) replaceRun(ctx context.Context, within time.Duration) (target, error) {
	var why error
	err := e.registration.Run.AwaitVacant(ctx, within, func(atMost time.Duration, agents bool) {
		why = &EarlierRunError{e.config.Job, agents}
		e.delayed(why, atMost)
	})
	if err != nil && why != nil {
		err = fmt.Errorf("%w: %w", why, err)
	}
	return target{}, err
}

// findLaterAttempt returns a later attempt of the run, which may have a place for this agent, or
// that it may join this one late. Where agents have leases, that of one that is lost may have yet
// to expire; the attempt is 0, which is that of another run, if this run is over or nobody is left.
func (e *entry) findLaterAttempt(ctx context.Context, refusal error) (target, error) {
	r, s, within := e.registration, e.session, time.Duration(0)
	agents, err := r.Run.Agents(ctx)
	switch {
	case err != nil:
		return target{}, err
	case agents == 0 && r.Elects():
		return e.replaceRun(ctx, 0)
	case r.Elects() && !acceptsLateJoin(s.signals, agents):
		within = r.TTL() + presence.MinTimeout
		if s.Verdict() == nil {
			e.delayed(refusal, within)
		}
	}
	number, err := e.laterAttempt(ctx, within)
	if err == nil && number == 0 && within > 0 {
		number, err = e.attemptAfterLoss(ctx, agents)
	}
	if err != nil || number > 0 {
		r.Run.Again() // others are in that run
		return target{number: number}, err
	}
	if r.Elects() {
		over, err := r.Run.Over(ctx)
		if err != nil {
			return target{}, err
		} else if over {
			return e.replaceRun(ctx, 0)
		}
	}
	agents, err = r.Run.Agents(ctx)
	switch {
	case err != nil:
		return target{}, err
	case agents == 0 && r.Elects():
		return e.replaceRun(ctx, 0)
	case refusal == ErrFull && acceptsLateJoin(s.signals, agents):
		r.Run.Again()
		return target{e.config.Attempt, true}, nil
	}
	return target{}, refusal
}

// attemptAfterLoss is laterAttempt if some of the agents that there were have been lost meanwhile:
// the others may not have noticed it yet, or may still be electing a leader. Otherwise it is 0,
// also if this attempt takes this agent late.
func (e *entry) attemptAfterLoss(ctx context.Context, agents int) (int, error) {
	left, err := e.registration.Run.Agents(ctx)
	if err != nil || left >= agents || left == 0 || acceptsLateJoin(e.session.signals, left) {
		return 0, err
	}
	return e.laterAttempt(ctx, e.config.settleLimit(e.registration.TTL()))
}

// laterAttempt returns the attempt that an agent may join for which this one has no place: the
// latest one or, if this is the latest and fails within some time, the one that follows. It is 0 if
// there is none.
func (e *entry) laterAttempt(ctx context.Context, within time.Duration) (int, error) {
	s := e.session
	ctx, done := s.life.store.Until(ctx)
	defer done()
	found, err := s.life.store.Get(ctx, s.keys.Run.Latest())
	if err != nil {
		return 0, err
	}
	if len(found.Kvs) > 0 {
		l, err := record.Decode[record.Latest](found.Kvs[0].Value)
		if err != nil || l.Attempt > e.config.Attempt {
			return l.Attempt, err
		}
	}
	select {
	case <-s.life.ctx.Done():
	case <-time.After(within):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	v, w := s.Verdict(), s.signals.World.Load()
	if v == nil || w == nil || !v.MayRestart() || !w.MayRestart() {
		return 0, nil
	}
	select {
	case <-s.signals.Settled.Done():
		if next := s.signals.Settled.Load().Restart; next != nil {
			return next.Attempt, nil
		}
		return 0, nil
	case <-time.After(e.config.settleLimit(e.registration.TTL())):
		return 0, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// delayed tells the caller that agents may have been killed.
func (e *entry) delayed(reason error, atMost time.Duration) {
	if e.config.Delayed != nil {
		e.config.Delayed(reason, atMost)
	}
}

// checkRunReplaced returns ErrOtherRun if the run is over or another one has begun, otherwise why
// this agent cannot join, which is err or, between two attempts, ErrFull.
func (e *entry) checkRunReplaced(ctx context.Context, err error) error {
	run := e.registration.Run
	if err == nil || !e.registration.Elects() || e.returns {
		return err
	}
	if err == ErrClosed || err == ErrFull { // the latter in a later attempt too
		over, unknown := run.Over(ctx)
		switch {
		case unknown != nil:
			return unknown
		case over:
			return registration.ErrOtherRun
		}
		err = ErrFull
	}
	if run.Replaced(ctx) {
		return registration.ErrOtherRun
	}
	return err
}
