package rdzv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/lease"
	"rdzv/rdzv/presence"
)

// tryAgain returns which attempt to try, late or not, after this agent was refused: of another run
// that has begun, a later one, or the same if those who had the place of this agent were killed:
// their leases have expired then. Otherwise it returns why this agent cannot join.
func (s *Session) tryAgain(ctx context.Context, refusal error) (attempt int, late bool, err error) {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	r := s.registration
	occupied, is := errors.AsType[*OccupiedError](refusal)
	_, isVersion := errors.AsType[*OtherVersionError](refusal)
	var holder clientv3.LeaseID
	switch {
	case refusal == errOtherRun:
		return 0, false, nil
	case !noPlace(refusal) && !isVersion:
		return 0, false, refusal
	case !r.elects, refusal == ErrFull && s.config.Lead.replaces():
		return s.findLaterAttempt(ctx, refusal)
	case is:
		holder = occupied.lease
	default:
		found, err := get(ctx, s.client, r.run.agents(), clientv3.WithFirstCreate()...)
		if err != nil {
			return 0, false, err
		}
		if len(found.Kvs) == 0 {
			return 0, false, nil // nobody is left: findRun replaces the run
		}
		holder = clientv3.LeaseID(found.Kvs[0].Lease)
	}
	waits := func(left time.Duration) { s.waits(refusal, left) }
	ended, err := lease.Ends(ctx, s.client, holder, waits)
	switch {
	case unavailable(err):
		return s.config.Attempt, false, nil // for now
	case err == nil && !ended:
		return 0, false, refusal
	case is, isVersion:
		r.value = "" // others may join that run
	}
	return s.config.Attempt, false, err
}

// findLaterAttempt returns a later attempt of the run, which may have a place for this agent, or
// that it may join this one late. Where agents have leases, that of one that is lost may have yet
// to expire; the attempt is 0, which is that of another run, if this run is over or nobody is left.
func (s *Session) findLaterAttempt(ctx context.Context, refusal error) (
	attempt int, late bool, err error,
) {
	r, within := s.registration, time.Duration(0)
	agents, err := s.agents(ctx)
	switch {
	case err != nil || agents == 0 && r.elects:
		return 0, false, err
	case r.elects && !s.acceptsLateJoin(agents):
		within = r.ttl + presence.MinTimeout
		if s.Verdict() == nil {
			s.waits(refusal, within)
		}
	}
	if attempt, err = s.laterAttempt(ctx, within); err != nil || attempt > 0 {
		r.value = "" // others are in that run
		return attempt, false, err
	}
	if r.elects {
		if over, err := s.isOver(ctx); err != nil || over {
			return 0, false, err
		}
	}
	agents, err = s.agents(ctx)
	switch {
	case err != nil || agents == 0 && r.elects:
		return 0, false, err
	case refusal == ErrFull && s.acceptsLateJoin(agents):
		r.value = ""
		return s.config.Attempt, true, nil
	}
	return 0, false, refusal
}

// agents is how many agents are in the run. One that was killed is until its lease expires.
func (s *Session) agents(ctx context.Context) (n int, err error) {
	found, err := get(ctx, s.client, s.registration.run.agents(), clientv3.WithPrefix(),
		clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return int(found.Count), nil
}

// acceptsLateJoin tells whether this attempt, of a job that has so many agents, takes another one
// late.
func (s *Session) acceptsLateJoin(agents int) bool {
	return s.mayJoinLate() && agents < s.world.Load().MaxAgents
}

// waits tells the caller that agents may have been killed.
func (s *Session) waits(reason error, atMost time.Duration) {
	if s.config.Delayed != nil {
		s.config.Delayed(reason, atMost)
	}
}

// replaces tells whether another agent may take the place of a lost one, or join late.
func (c *LeaderConfig) replaces() bool {
	return c.Restarts.Max > 0 && (c.Replaceable || c.Spares > 0 || c.MinAgents > 0)
}

// checkRunReplaced returns errOtherRun if the run is over or another one has begun, otherwise why
// this agent cannot join, which is err or, between two attempts, ErrFull.
func (s *Session) checkRunReplaced(ctx context.Context, err error) error {
	r := s.registration
	if err == nil || !r.elects || s.returns {
		return err
	}
	if err == ErrClosed || err == ErrFull { // the latter in a later attempt too
		over, unknown := s.isOver(ctx)
		switch {
		case unknown != nil:
			return unknown
		case over:
			return errOtherRun
		}
		err = ErrFull
	}
	found, getErr := get(ctx, s.client, r.name.run())
	if getErr == nil && (len(found.Kvs) == 0 || string(found.Kvs[0].Value) != r.value) {
		r.value = ""
		return errOtherRun
	}
	return err
}

// isOver tells whether the run has a verdict after which there is no other attempt. While the
// leader has yet to decide on that, it is not.
func (s *Session) isOver(ctx context.Context) (bool, error) {
	run := s.registration.run
	found, err := get(ctx, s.client, run.latest())
	if err != nil {
		return false, err
	}
	k := run.ofAttempt(0)
	if len(found.Kvs) > 0 {
		v, err := decode[latest](found.Kvs[0].Value)
		if err != nil {
			return false, fmt.Errorf("cannot read %q: %w", run.latest(), err)
		}
		k = run.ofAttempt(v.Attempt)
	}
	if found, err = get(ctx, s.client, k.signals(), clientv3.WithPrefix()); err != nil {
		return false, err
	}
	values := valuesOf(found.Kvs)
	verdict, ended := values[k.verdict()]
	if !ended {
		return false, nil
	}
	if value, decided := values[k.settled()]; decided {
		all, err := decode[settled](value)
		return err != nil || all.Restart == nil, nil
	}
	v, err := decode[Verdict](verdict)
	w, _ := decode[World](values[k.world()]) // without one no worker has failed
	return err != nil || !v.MayRestart() || w.Attempt >= w.MaxRestarts, nil
}

func valuesOf(kvs []*mvccpb.KeyValue) map[string][]byte {
	values := make(map[string][]byte, len(kvs))
	for _, kv := range kvs {
		values[string(kv.Key)] = kv.Value
	}
	return values
}
