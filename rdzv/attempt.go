package rdzv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/restart"
)

// Restart is an attempt that follows another one, after a failure.
type Restart struct {
	Attempt int           `json:"attempt"`
	Delay   time.Duration `json:"delay,omitempty"` // before its workers start
}

// later tells whether this leader continues the job after another attempt.
func (l *Leader) later() bool { return l.previous != keys{} }

// afterwards decides what follows this attempt, when all have settled. The leader of the next
// attempt watches its keys before any agent learns of it.
func (l *Leader) afterwards(ctx context.Context) (*Leader, restart.Decision, error) {
	d := l.decide()
	if !d.Restart {
		return nil, d, nil
	}
	config := l.config
	config.Attempt++
	config.Waiting = nil // for agents that have yet to be started
	next, err := NewLeader(ctx, l.client, config)
	if err != nil {
		return nil, d, err
	}
	next.previous, next.failures, next.began = l.keys, l.failures, l.began
	next.startAt = time.Now().Add(d.Delay)
	for _, m := range l.joined {
		next.addMember(&memberState{Member: m.Member, seat: m.seat, away: true})
	}
	return next, d, nil
}

// decide decides whether there is another attempt: only if all agents are still there.
func (l *Leader) decide() restart.Decision {
	v, policy := l.verdict, l.config.Restarts
	if v.Kind != Failed || policy.Max == 0 {
		return restart.Decision{}
	}
	missing := func(m *memberState) bool { return m.lost || !m.settled }
	if !l.complete || slices.ContainsFunc(l.joined, missing) {
		return restart.Decision{Reason: restart.Lost}
	}
	isMPI := func(w Worker) bool { return w.MPI }
	if slices.ContainsFunc(l.outcomes, func(o Outcome) bool {
		return slices.ContainsFunc(o.Workers, isMPI)
	}) {
		return restart.Decision{Reason: restart.MPI}
	}
	f := restart.Failure{Code: v.Code, Took: v.Took}
	if v.Signal != 0 {
		f.Code = 128 + v.Signal
	} else if v.Held == 0 { // otherwise it says that another worker has closed its connection
		f.Message = v.Text
	}
	l.failures = append(l.failures, f)
	return policy.Decide(l.failures)
}

// forgetPrevious deletes the keys of the previous attempt, so that the store does not grow.
// All agents have joined this attempt. The world of the first one stays: it keeps other agents from
// joining.
func (l *Leader) forgetPrevious(ctx context.Context) error {
	k := l.previous
	over, err := l.client.Get(ctx, k.settled(), clientv3.WithKeysOnly())
	if err == nil {
		end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(k.prefix))
		ops := []clientv3.Op{clientv3.OpDelete(k.prefix, end)}
		if first := len(l.failures) == 1; first {
			ops = []clientv3.Op{
				clientv3.OpDelete(k.prefix, clientv3.WithRange(k.world())),
				clientv3.OpDelete(k.world()+"\x00", end),
			}
		}
		err = l.commit(ctx, nil, ops...)
	}
	if err != nil {
		return fmt.Errorf("cannot delete the previous attempt of job %q: %w", l.config.Job, err)
	}
	if len(over.Kvs) > 0 { // which every agent has read
		// It fails if it has been done after a later question.
		_, _ = l.client.Compact(ctx, over.Kvs[0].ModRevision)
	}
	return nil
}

// Next makes this agent a member of the attempt that follows this one, after Leave. It stays
// registered in the store all the time, under the same ID. If it cannot join, or if the job has
// ended meanwhile, the Context of the session that is returned ends with the reason, as at any
// other time. ctx bounds only the call.
func (s *Session) Next(ctx context.Context, self Member, joinBy time.Time) (*Session, error) {
	if s.summary.Restart == nil {
		return nil, errors.New("cannot join another attempt: there is none")
	}
	c := s.config
	c.Attempt, c.Self, c.JoinBy = s.summary.Restart.Attempt, self, joinBy
	c.Self.ID = s.config.Self.ID
	next, err := newSession(s.client, c, s.present, s.vanish)
	if err != nil {
		s.close(err, false)
		return nil, err
	}
	next.registration = s.registration
	if err := next.rejoin(ctx); err != nil {
		next.loseStore(fmt.Errorf("%w: %w", ErrStoreLost, err))
	}
	return next, nil
}

// rejoin is join for an agent that is registered.
func (s *Session) rejoin(ctx context.Context) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	events, stopWatch, err := watch(ctx, s.client, s.keys.signals())
	if err != nil {
		return fmt.Errorf("cannot watch job %q: %w", s.config.Job, err)
	}
	s.stopWatch = stopWatch
	defer s.wg.Go(func() { s.follow(events) })
	_, err = s.putMember(ctx, nil)
	if err == ErrClosed { // another agent has ended the job already, perhaps before the watch began
		return s.readSignalsOnce(ctx)
	}
	return err
}

func (s *Session) readSignalsOnce(ctx context.Context) error {
	found, err := s.get(ctx, s.keys.signals(), clientv3.WithPrefix())
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
