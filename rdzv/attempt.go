package rdzv

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Next makes this agent a member of the attempt that follows this one, after Leave. It stays
// registered in the store all the time, under the same ID. If it cannot join, or if the job has
// ended meanwhile, the Context of the session that is returned ends with the reason, as at any
// other time. ctx bounds only the call.
func (s *Session) Next(ctx context.Context, self Member, joinBy time.Time) (*Session, error) {
	if s.summary.Restart == nil {
		return nil, errors.New("cannot join another attempt: there is none")
	}
	self.ID = s.config.Self.ID
	next, err := s.inAttempt(s.summary.Restart.Attempt, self, joinBy)
	if err != nil {
		s.close(err, false)
		return nil, err
	}
	next.returns = true
	// ErrClosed: another agent has ended the job already, and this one has read how.
	if err := next.enter(ctx); err != nil && err != ErrClosed {
		next.loseStore(fmt.Errorf("%w: %w", ErrStoreLost, err))
	}
	return next, nil
}

// inAttempt leaves this attempt alone, and returns the session of a later one, which has not
// joined.
func (s *Session) inAttempt(attempt int, self Member, joinBy time.Time) (*Session, error) {
	c := s.config
	c.Attempt, c.Self, c.JoinBy = attempt, self, joinBy
	next, err := newSession(s.registration, c)
	if err != nil {
		return s, err
	}
	next.announced = s.announced
	s.closeAttempt(errLeft)
	return next, nil
}

// laterAttempt returns the attempt that an agent may join for which this one has no place: the
// latest one or, if this is the latest and fails within some time, the one that follows. It is 0 if
// there is none.
func (s *Session) laterAttempt(ctx context.Context, within time.Duration) (int, error) {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	found, err := get(ctx, s.client, s.keys.run.latest())
	if err != nil {
		return 0, err
	}
	if len(found.Kvs) > 0 {
		l, err := decode[latest](found.Kvs[0].Value)
		if err != nil || l.Attempt > s.config.Attempt {
			return l.Attempt, err
		}
	}
	select {
	case <-s.ctx.Done():
	case <-time.After(within):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	v, w := s.Verdict(), s.world.Load()
	if v == nil || w == nil || !v.MayRestart() || w.Attempt >= w.MaxRestarts {
		return 0, nil
	}
	select {
	case <-s.haveSettled:
		if next := s.settled.Load().Restart; next != nil {
			return next.Attempt, nil
		}
		return 0, nil
	case <-time.After(s.settleLimit()):
		return 0, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func (s *Session) readSignalsOnce(ctx context.Context) error {
	found, err := get(ctx, s.client, s.keys.signals(), clientv3.WithPrefix())
	if err != nil {
		return err
	}
	for _, kv := range found.Kvs {
		if err := s.applySignal(&clientv3.Event{Type: clientv3.EventTypePut, Kv: kv}); err != nil {
			return err
		}
	}
	return nil
}
