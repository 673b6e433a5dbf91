package rdzv

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/lease"
	"rdzv/rdzv/presence"
)

// mayTryAgain returns which attempt to try, late or not: of another run that has begun, or if those
// who had the place of this agent were killed: their leases have expired then. Otherwise it returns
// why this agent cannot join.
func (l *leased) mayTryAgain(ctx context.Context, refusal error) (
	attempt int, late bool, err error,
) {
	ctx, done := l.untilStoreLost(ctx)
	defer done()
	occupied, is := errors.AsType[*OccupiedError](refusal)
	_, isVersion := errors.AsType[*OtherVersionError](refusal)
	var holder clientv3.LeaseID
	switch {
	case refusal == errOtherRun:
		return 0, false, nil
	case is:
		holder = occupied.lease
	case refusal == ErrFull && l.config.Lead.replaces():
		return l.tryLater(ctx)
	case refusal == ErrFull, isVersion:
		found, err := l.get(ctx, l.run.agents(), clientv3.WithFirstCreate()...)
		if err != nil {
			return 0, false, err
		}
		if len(found.Kvs) == 0 {
			return 0, false, nil // nobody is left: findRun replaces the run
		}
		holder = clientv3.LeaseID(found.Kvs[0].Lease)
	default:
		return 0, false, refusal
	}
	waits := func(left time.Duration) { l.waits(refusal, left) }
	ended, err := lease.Ends(ctx, l.client, holder, waits)
	switch {
	case unavailable(err):
		return l.config.Attempt, false, nil // for now
	case err == nil && !ended:
		return 0, false, refusal
	case is, isVersion:
		l.value = "" // others may join that run
	}
	return l.config.Attempt, false, err
}

// tryLater returns a later attempt of the run, which may have a place for this agent, or that it
// may join this one late. If no agent is lost now, its lease may have yet to expire. It is 0, which
// is that of another run, if this run is over or nobody is left.
func (l *leased) tryLater(ctx context.Context) (attempt int, late bool, err error) {
	within := l.leases.ttl + presence.MinTimeout
	agents, err := l.agents(ctx)
	switch {
	case err != nil || agents == 0:
		return 0, false, err
	case l.takesLate(agents):
		within = 0
	case l.Verdict() == nil:
		l.waits(ErrFull, within)
	}
	if attempt, err = l.laterAttempt(ctx, within); err != nil || attempt > 0 {
		l.value = "" // others are in that run
		return attempt, false, err
	}
	if over, err := l.isOver(ctx); err != nil || over {
		return 0, false, err
	}
	agents, err = l.agents(ctx)
	switch {
	case err != nil || agents == 0:
		return 0, false, err
	case l.takesLate(agents):
		l.value = ""
		return l.config.Attempt, true, nil
	}
	return 0, false, ErrFull
}

// agents is how many agents are in the run. One that was killed is until its lease expires.
func (l *leased) agents(ctx context.Context) (n int, err error) {
	found, err := l.get(ctx, l.run.agents(), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return int(found.Count), nil
}

// takesLate tells whether this attempt, of a job that has so many agents, takes another one late.
func (l *leased) takesLate(agents int) bool {
	return l.mayJoinLate() && agents < l.world.Load().MaxAgents
}

// waits tells the caller that agents may have been killed.
func (l *leased) waits(reason error, atMost time.Duration) {
	if l.config.Delayed != nil {
		l.config.Delayed(reason, atMost)
	}
}

// replaces tells whether another agent may take the place of a lost one, or join late.
func (c *LeaderConfig) replaces() bool {
	return c.Restarts.Max > 0 && (c.Replaceable || c.Spares > 0 || c.MinAgents > 0)
}

// orOtherRun returns errOtherRun if the run is over or another one has begun, otherwise why this
// agent cannot join, which is err or, between two attempts, ErrFull.
func (l *leased) orOtherRun(ctx context.Context, err error) error {
	if err == ErrClosed || err == ErrFull { // the latter in a later attempt too
		over, unknown := l.isOver(ctx)
		switch {
		case unknown != nil:
			return unknown
		case over:
			return errOtherRun
		}
		err = ErrFull
	}
	found, getErr := again(ctx, func() (*clientv3.GetResponse, error) {
		return l.client.Get(ctx, l.name.run())
	})
	if getErr == nil && (len(found.Kvs) == 0 || string(found.Kvs[0].Value) != l.value) {
		l.value = ""
		return errOtherRun
	}
	return err
}

// isOver tells whether the run has a verdict after which there is no other attempt. While the
// leader has yet to decide on that, it is not.
func (l *leased) isOver(ctx context.Context) (bool, error) {
	found, err := l.get(ctx, l.run.latest())
	if err != nil {
		return false, err
	}
	k := l.run.ofAttempt(0)
	if len(found.Kvs) > 0 {
		v, err := decode[latest](found.Kvs[0].Value)
		if err != nil {
			return false, fmt.Errorf("cannot read %q: %w", l.run.latest(), err)
		}
		k = l.run.ofAttempt(v.Attempt)
	}
	if found, err = l.get(ctx, k.signals(), clientv3.WithPrefix()); err != nil {
		return false, err
	}
	values := valuesOf(found.Kvs)
	verdict, ended := values[k.verdict()]
	if !ended {
		return false, nil
	}
	if value, decided := values[k.settled()]; decided {
		s, err := decode[settled](value)
		return err != nil || s.Restart == nil, nil
	}
	v, err := decode[Verdict](verdict)
	w, _ := decode[World](values[k.world()]) // without one no worker has failed
	return err != nil || !v.MayRestart() || w.Attempt >= w.MaxRestarts, nil
}
