package rdzv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/presence"
)

// Join makes this agent a member of the job. It registers in the store, starts to watch the job's
// signals, so that it misses none, and then publishes the member. If agents were lost in a job with
// restarts it joins the next attempt, in the place of one of them. In a job with a variable number
// of agents that runs it waits for the next attempt as a spare. ctx bounds only the call.
//
// It returns [ErrClosed], [ErrFull] or an *[OccupiedError] if the job in this store has no place
// for this agent, and [ErrStoreLost] if the store was lost meanwhile.
func Join(ctx context.Context, client *clientv3.Client, c Config) (*Session, error) {
	c.complete()
	r := newRegistration(client, c)
	s, err := newSession(r, c)
	if err != nil {
		r.vanish(err)
		return nil, err
	}
	if err = s.register(ctx); err == nil {
		s, err = s.enterAny(ctx)
	}
	if err != nil {
		// After any other error the member may have been published.
		s.close(err, noPlace(err) || s.waitedTooLong())
		return nil, err
	}
	return s, nil
}

// enterAny makes this agent a member of the first attempt that has a place for it, from this one
// on.
func (s *Session) enterAny(ctx context.Context) (*Session, error) {
	for refusal := s.enter(ctx); refusal != nil; refusal = s.enter(ctx) {
		attempt, late, err := s.tryAgain(ctx, refusal)
		if err != nil {
			return s, err
		}
		if s, err = s.inAttempt(attempt, s.config.Self, s.config.JoinBy); err != nil {
			return s, err
		}
		s.late = late
	}
	return s, nil
}

// waitedTooLong tells whether this agent could not complete its member in time. That is no loss:
// the others have their own join timeouts, and then tell what this agent waited for.
func (s *Session) waitedTooLong() bool {
	c := s.config
	return c.Prepare != nil && s.announced && !c.JoinBy.IsZero() && !time.Now().Before(c.JoinBy)
}

// noPlace tells whether an attempt has no place for an agent.
func noPlace(err error) bool {
	_, occupied := errors.AsType[*OccupiedError](err)
	return occupied || err == ErrClosed || err == ErrFull
}

// complete sets the defaults.
func (c *Config) complete() {
	c.SettleTimeout = cmp.Or(c.SettleTimeout, defaultSettleTimeout)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, defaultConnectTimeout)
	c.keepHistory = cmp.Or(c.keepHistory, defaultKeepHistory)
	c.Prefix = cmp.Or(c.Prefix, DefaultPrefix)
	c.PeerTimeout = cmp.Or(c.PeerTimeout, presence.DefaultTimeout)
	c.StoreTimeout = cmp.Or(c.StoreTimeout, c.PeerTimeout)
	if c.Lead != nil && c.Lead.Restarts.Max > 0 { // its workers run that long without an answer
		c.PeerTimeout = max(c.PeerTimeout, c.StoreTimeout)
	}
}

// newSession returns the session of one attempt, which has not joined.
func newSession(r *registration, c Config) (*Session, error) {
	if c.Job == "" {
		return nil, errors.New("cannot join a job without a name")
	}
	if err := c.completeSelf(); err != nil {
		return nil, err
	}
	s := &Session{
		config: c, client: r.client, stopWatch: func() {},
		keys: r.run.ofAttempt(c.Attempt), registration: r,
		haveWorld: make(chan struct{}), haveStart: make(chan struct{}),
		released: make(chan struct{}), haveAbsent: make(chan struct{}),
		progress: make(chan InitProgress, maxProgress),
		haveLook: make(chan struct{}), haveSettled: make(chan struct{}),
		sharing: newSharing(),
	}
	s.store, s.loseStore = context.WithCancelCause(r.present)
	s.ctx, s.cancel = context.WithCancelCause(s.store)
	s.answering, s.stopAnswers = context.WithCancel(s.store)
	return s, nil
}

// enter makes an agent that is registered a member of this attempt. If that has no place for it, it
// has read the signals.
func (s *Session) enter(ctx context.Context) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	if err := s.enterRun(ctx); err != nil {
		return err
	}
	follow, err := s.watchSignals(ctx)
	if err != nil {
		return err
	}
	defer s.wg.Go(follow)
	if err = s.prepare(ctx); err == nil {
		err = s.putMember(ctx)
	}
	if noPlace(err) || s.late { // they may have been written before the watch began
		err = cmp.Or(s.readSignalsOnce(ctx), err)
	}
	return s.checkRunReplaced(ctx, err)
}

// openStream opens this agent's presence stream.
func (s *Session) openStream(ctx context.Context, conn *grpc.ClientConn) (*presence.Stream, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var limiter sync.WaitGroup
	limiter.Go(func() { s.limitConnecting(ctx, cancel, conn) })
	defer limiter.Wait()
	defer cancel(nil)
	lost := func() { s.registration.vanish(ErrStoreLost) }
	stream, err := presence.Open(ctx, conn, s.config.Self.ID, lost)
	if unavailable(err) {
		return nil, fmt.Errorf("%w: cannot register: %v", ErrStoreLost, err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot register in the store: %w", err)
	}
	return stream, nil
}

// limitConnecting cancels the registration if no connection is made within the connect
// timeout after one has failed. It runs until ctx ends, because a connection can fail
// before the first request, and gRPC then makes another one.
func (s *Session) limitConnecting(
	ctx context.Context, cancel context.CancelCauseFunc, conn *grpc.ClientConn,
) {
	timedOut := fmt.Errorf("%w: not connected within %v", ErrStoreLost, s.config.ConnectTimeout)
	timer := time.AfterFunc(math.MaxInt64, func() { cancel(timedOut) })
	defer timer.Stop()
	failing := false // an attempt has failed, and the timer runs
	for state := conn.GetState(); ; state = conn.GetState() {
		switch {
		case state == connectivity.Ready:
			timer.Stop()
			failing = false
		case state == connectivity.TransientFailure && !failing:
			timer.Reset(s.config.ConnectTimeout)
			failing = true
		}
		if !conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// completeSelf checks the member, and limits what it has.
func (c *Config) completeSelf() error {
	if err := c.Self.Check(); err != nil {
		return fmt.Errorf("cannot join job %q: %w", c.Job, err)
	}
	c.Self.Problems = record.ClippedProblems(c.Self.Problems)
	c.Self.Rank0Problems = record.ClippedProblems(c.Self.Rank0Problems)
	c.Self.Facts, c.Self.NodeFacts = c.Self.Facts.Clipped(), record.ClippedNodeFacts(c.Self.NodeFacts)
	if !c.JoinBy.IsZero() {
		c.Self.JoinWithin = max(1, time.Until(c.JoinBy))
	}
	return nil
}

// prepare lets the agent complete its member, if it has to wait for that. Meanwhile it has its
// place in the attempt, and the leader knows what it waits for.
func (s *Session) prepare(ctx context.Context) (err error) {
	if s.config.Prepare == nil {
		return nil
	}
	self, waits := s.config.Self, clip(s.config.Waits)
	value := encode(preparing{Member: self.Identity(), Waits: waits})
	if _, err := s.putPlaced(ctx, s.keys.prepares(self.ID), value); err != nil {
		return err
	}
	s.announced = true
	if s.config.Self, err = s.config.Prepare(ctx); err != nil {
		return err
	}
	s.config.Prepare = nil
	return s.config.completeSelf()
}

// putMember publishes the member, see putPlaced, and in this agent's first attempt that it is
// alive.
func (s *Session) putMember(ctx context.Context) error {
	r, joins := s.registration, []clientv3.Op{}
	if r.elects && !s.returns {
		joins = append(joins, clientv3.OpGet(r.run.agents(), clientv3.WithLastCreate()...))
	}
	if !s.returns {
		joins = append(joins, s.putAgent())
	}
	found, err := s.putPlaced(ctx, s.keys.member(s.config.Self.ID), encode(s.config.Self), joins...)
	if err != nil {
		return err
	}
	r.last.Store(s)
	if r.elects && !s.returns {
		r.joined(append(found, nil)[0])
	}
	return nil
}

// putPlaced puts a key of this agent, unless this attempt does not take the agent, it must not
// share its host with one that joined before, it is lost, or another run has begun. It returns the
// results of first, which is executed before; nil if an earlier try succeeded, but its answer was
// lost.
func (s *Session) putPlaced(ctx context.Context, key, value string, first ...clientv3.Op) (
	[]*etcdserverpb.ResponseOp, error,
) {
	r := s.registration
	free, occupy := s.place()
	notLost := absent(r.run.lost(s.config.Self.ID))
	answer, err := commit(ctx, s.client,
		slices.Concat(r.runs(), free, s.open(), []clientv3.Cmp{notLost}),
		slices.Concat(first, occupy,
			[]clientv3.Op{clientv3.OpPut(key, value, clientv3.WithLease(r.lease))}),
		[]clientv3.Op{
			clientv3.OpGet(key, clientv3.WithCountOnly()),
			clientv3.OpGet(s.keys.verdict(), clientv3.WithCountOnly()),
			clientv3.OpGet(r.run.host(s.config.Self.Node), clientv3.WithPrefix()),
		})
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot join job %q: %w", s.config.Job, err)
	case answer.Succeeded:
		return answer.Responses[:len(first)], nil
	case answer.Responses[0].GetResponseRange().Count > 0:
		return nil, nil
	case answer.Responses[1].GetResponseRange().Count > 0:
		return nil, ErrClosed
	}
	occupants := (*clientv3.GetResponse)(answer.Responses[2].GetResponseRange())
	if other := s.neighbour(occupants); other != nil {
		return nil, other
	}
	return nil, ErrFull
}

// occupant is an agent without a launcher on its host.
type occupant struct {
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	NodeRank int    `json:"node_rank"`
}

// place returns how an agent without a launcher occupies its host, alone or with a node rank of its
// own, and the conditions for that. They are part of the transaction that publishes the member, so
// that of two agents exactly the later one is refused. The agent keeps it in all attempts.
func (s *Session) place() (free []clientv3.Cmp, occupy []clientv3.Op) {
	m := s.config.Self
	if !m.OccupiesHost() || s.returns || s.announced {
		return nil, nil
	}
	run := s.registration.run
	if m.NodeRank == Unknown {
		free = []clientv3.Cmp{absent(run.host(m.Node)).WithPrefix()}
	} else {
		alone := m
		alone.NodeRank = Unknown
		free = []clientv3.Cmp{absent(run.place(alone)), absent(run.place(m))}
	}
	return free, s.occupy()
}

// occupy puts the place of this agent, if it has one.
func (s *Session) occupy() []clientv3.Op {
	m, r := s.config.Self, s.registration
	if !m.OccupiesHost() {
		return nil
	}
	return []clientv3.Op{clientv3.OpPut(r.run.place(m), encode(occupant{m.Host, m.PID, m.NodeRank}),
		clientv3.WithLease(r.lease))}
}

// neighbour says which agent keeps this one from its host; nil if none does.
func (s *Session) neighbour(occupants *clientv3.GetResponse) *OccupiedError {
	m := s.config.Self
	if !m.OccupiesHost() {
		return nil
	}
	for _, kv := range occupants.Kvs {
		o, err := decode[occupant](kv.Value)
		shared := m.NodeRank != Unknown && o.NodeRank != Unknown && m.NodeRank != o.NodeRank
		if err == nil && !shared {
			return &OccupiedError{o.Host, o.PID, clientv3.LeaseID(kv.Lease)}
		}
	}
	return nil
}
