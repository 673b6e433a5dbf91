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
	// Vacant are the ranks of agents that are lost, and their nodes: the attempt waits for other
	// agents in their place.
	Vacant []NodeRanks `json:"vacant,omitempty"`
	// Missing is how many more agents the attempt needs than are left, in a job with a variable number
	// of agents.
	Missing int `json:"missing,omitempty"`
}

// latest is the value of latest: the latest attempt, and what its leader has to know of those
// before.
type latest struct {
	Attempt  int               `json:"attempt"`
	Delay    time.Duration     `json:"delay,omitempty"` // before its workers start
	Began    time.Time         `json:"began"`           // when the first world was published
	Failures []restart.Failure `json:"failures"`
}

// later tells whether this leader continues the job after another attempt.
func (l *Leader) later() bool { return l.previous != keys{} }

// afterwards decides what follows this attempt, when all have settled. The leader of the next
// attempt has the same watch, which is over the keys of all attempts.
func (l *Leader) afterwards() (*Leader, restart.Decision) {
	d := l.decide()
	if !d.Restart {
		return nil, d
	}
	config := l.config
	config.Attempt++
	config.Waiting = nil // for agents that have yet to be started
	next := newLeader(l.client, l.keys.run.ofAttempt(config.Attempt), config)
	next.term, next.events, next.cancel = l.term, l.events, l.cancel
	next.missing, next.returned = l.missing, l.returned
	next.previous, next.failures, next.began = l.keys, l.failures, l.began
	next.startAt, next.clearAt, next.gone = time.Now().Add(d.Delay), l.clearAt, l.gone
	for _, m := range l.remaining() {
		next.addMember(&memberState{Member: m.Member, seat: m.seat, away: true, lost: m.lost,
			withdrawn: m.withdrawn})
	}
	next.seatSpares()
	return next, d
}

// decide decides whether there is another attempt: only if all agents have settled, or others may
// take their place.
func (l *Leader) decide() restart.Decision {
	v, policy := l.verdict, l.config.Restarts
	if !v.MayRestart() || policy.Max == 0 {
		return restart.Decision{}
	}
	if v.Withdrawn && !l.release() {
		return restart.Decision{}
	}
	lost := func(m *memberState) bool { return m.lost }
	if !l.mayGoOn() {
		return restart.Decision{Reason: restart.Lost}
	}
	isMPI := func(w Worker) bool { return w.MPI }
	if slices.ContainsFunc(l.outcomes, func(o Outcome) bool {
		return slices.ContainsFunc(o.Workers, isMPI)
	}) {
		return restart.Decision{Reason: restart.MPI}
	}
	f := restart.Failure{Code: v.Code, Took: v.Took}
	switch {
	case v.Kind == Lost, v.Withdrawn:
		f.Code, f.Took = restart.LostCode, l.verdictAt.Sub(l.agreed)
	case v.Signal != 0:
		f.Code = 128 + v.Signal
	case v.LastLine:
	case v.Held > 0, slices.ContainsFunc(l.joined, lost): // it has probably lost its connection
	default:
		f.Message = restart.Essence(v.Text, v.Rank, v.LocalRank, v.PID)
	}
	l.failures = append(l.failures, f)
	return policy.Decide(l.failures)
}

// forgetPrevious deletes the keys of the previous attempt, so that the store does not grow.
// All agents have joined this attempt. The world of the first one stays: it keeps other agents from
// joining.
func (l *Leader) forgetPrevious(ctx context.Context) error {
	k := l.previous
	over, err := again(ctx, func() (*clientv3.GetResponse, error) {
		return l.client.Get(ctx, k.settled(), clientv3.WithKeysOnly())
	})
	if err == nil {
		end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(k.prefix))
		ops := []clientv3.Op{clientv3.OpDelete(k.prefix, end)}
		if l.config.Attempt == 1 {
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
	if len(over.Kvs) > 0 && !l.elected() { // which every agent has read
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
