package rdzv

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"rdzv/rdzv/presence"
)

// Config says which job an agent joins, and as what.
type Config struct {
	Job     string // name shared by all agents of this run and by no other run in the store
	Attempt int    // which try at running the workers; 0 is the first
	Self    Member // what this agent says of itself; see there for what is required

	// JoinBy is when this agent gives up waiting for the others, which ends the job
	// for all; zero is never.
	JoinBy time.Time

	// SettleTimeout is how long after the verdict the slowest agent may take to
	// stop its workers; Leave waits a little longer than that for the others.
	// Default 15 s: a grace of 10 s and 5 s to spare.
	SettleTimeout time.Duration

	// ConnectTimeout is how long Join goes on trying to connect to the store after
	// a first try has failed; default 2 s. A store that is busy with thousands of
	// agents takes long to answer and fails nobody; one that went while this agent
	// came to it fails every try.
	ConnectTimeout time.Duration
}

const (
	defaultSettleTimeout  = 15 * time.Second
	defaultConnectTimeout = 2 * time.Second
)

// Session is an agent's part in a job, from Join to Leave. Its methods may be
// called by several goroutines at once.
type Session struct {
	config Config
	client *clientv3.Client
	keys   keys

	ctx      context.Context // the job's; ends with the verdict, or the store's loss
	cancel   context.CancelCauseFunc
	store    context.Context // ends when the store is lost, or cannot be followed
	lose     context.CancelCauseFunc
	stream   *presence.Stream // nil in the process of the store
	watching context.CancelFunc
	wg       sync.WaitGroup

	started chan struct{} // closed when world is set
	gone    chan struct{} // closed when settlement is set

	mu         sync.Mutex
	world      *World
	verdict    *Verdict
	settlement *settlement

	leave   sync.Once
	summary Summary
	left    error
}

// Join makes this agent a member of the job and returns. It first takes its
// place on the store's roll, then watches the job's signals, so that none is
// missed, then says what it is. ctx bounds the call alone.
//
// It returns [ErrClosed] or [ErrFull] when the job in this store has no place
// for this agent, and [ErrStoreLost] when the store went meanwhile: all are
// reasons to look for another store.
func Join(ctx context.Context, client *clientv3.Client, c Config) (*Session, error) {
	if c.Job == "" {
		return nil, errors.New("cannot join a job without a name")
	}
	if c.SettleTimeout == 0 {
		c.SettleTimeout = defaultSettleTimeout
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = defaultConnectTimeout
	}
	if err := c.Self.check(); err != nil {
		return nil, err
	}
	c.Self.Problems = clipped(c.Self.Problems)
	if !c.JoinBy.IsZero() {
		c.Self.JoinWithin = max(1, time.Until(c.JoinBy))
	}
	s := &Session{
		config: c, client: client, keys: keysOf(c.Job, c.Attempt), watching: func() {},
		started: make(chan struct{}), gone: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.store, s.lose = context.WithCancelCause(context.Background())
	if err := s.join(ctx); err != nil {
		// Only who was turned away is known not to be a member, who nobody waits for.
		s.close(err, err == ErrClosed || err == ErrFull)
		return nil, err
	}
	return s, nil
}

func (s *Session) join(ctx context.Context) error {
	if conn := s.client.ActiveConnection(); conn != nil {
		var err error
		if s.stream, err = s.enter(ctx, conn); err != nil {
			return err
		}
		s.wg.Go(s.watchStream)
	}
	ctx, done := s.while(ctx)
	defer done()
	if err := s.watch(ctx); err != nil {
		return fmt.Errorf("cannot watch job %q: %w", s.config.Job, err)
	}
	return s.announce(ctx)
}

// enter takes this agent's place on the store's roll.
func (s *Session) enter(ctx context.Context, conn *grpc.ClientConn) (*presence.Stream, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { s.giveUp(ctx, cancel, conn) })
	defer watching.Wait()
	defer cancel(nil)
	stream, err := presence.Open(ctx, conn, s.config.Self.ID)
	switch {
	case err == nil:
		return stream, nil
	case unavailable(err):
		return nil, fmt.Errorf("%w: cannot enter its roll: %v", ErrStoreLost, err)
	default:
		return nil, fmt.Errorf("cannot enter the roll of the store: %w", err)
	}
}

// giveUp ends the wait for an answer when no connection has been made within the
// connect timeout after one has failed. It stays until ctx ends: a connection that
// is made may fail before anything was asked over it, and then be tried anew.
func (s *Session) giveUp(ctx context.Context, cancel context.CancelCauseFunc, conn *grpc.ClientConn) {
	failed := fmt.Errorf("%w: no connection within %v", ErrStoreLost, s.config.ConnectTimeout)
	timer := time.AfterFunc(math.MaxInt64, func() { cancel(failed) })
	defer timer.Stop()
	failing := false // a try has, and the timer runs
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

// watchStream waits for the loss of the store.
func (s *Session) watchStream() {
	select {
	case <-s.stream.Lost():
		s.lose(ErrStoreLost)
		s.cancel(ErrStoreLost)
	case <-s.stream.Done():
	}
}

// while returns ctx, ended by the loss of the store.
func (s *Session) while(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.store, func() { cancel(context.Cause(s.store)) })
	return ctx, func() { stop(); cancel(nil) }
}

// announce puts the member, if the job has still a place for it.
func (s *Session) announce(ctx context.Context) error {
	self := s.keys.member(s.config.Self.ID)
	answer, err := commit(ctx, s.client,
		[]clientv3.Cmp{absent(s.keys.verdict()), absent(s.keys.world())},
		[]clientv3.Op{clientv3.OpPut(self, encode(s.config.Self))},
		[]clientv3.Op{clientv3.OpGet(self, clientv3.WithCountOnly()), clientv3.OpGet(s.keys.verdict(), clientv3.WithCountOnly())})
	switch {
	case err != nil:
		return fmt.Errorf("cannot join job %q: %w", s.config.Job, err)
	case answer.Succeeded:
		return nil
	case answer.Responses[0].GetResponseRange().Count > 0:
		return nil // the connection broke before the answer to an earlier try
	case answer.Responses[1].GetResponseRange().Count > 0:
		return ErrClosed
	default:
		return ErrFull
	}
}

// Context lives as long as the job runs. The cause of its end is a *[Verdict],
// [ErrStoreLost] or [ErrFull], or what keeps this agent from following the job; any
// error after Leave.
func (s *Session) Context() context.Context { return s.ctx }

// World waits until all agents are here and returns the world that they agreed
// on. When the job ends before it has begun, the error is what ended it, as of
// Context.
func (s *Session) World(ctx context.Context) (World, error) {
	select {
	case <-s.started:
		return s.seated(ctx)
	case <-s.ctx.Done():
		return World{}, context.Cause(s.ctx)
	case <-ctx.Done():
		return World{}, context.Cause(ctx)
	}
}

// seated gets this agent's own seat, which was written before the world.
func (s *Session) seated(ctx context.Context) (World, error) {
	if s.ctx.Err() != nil {
		return World{}, context.Cause(s.ctx)
	}
	ctx, done := s.while(ctx)
	defer done()
	key := s.keys.seat(s.config.Self.ID)
	answer, err := again(ctx, func() (*clientv3.GetResponse, error) { return s.client.Get(ctx, key) })
	if err != nil {
		return World{}, fmt.Errorf("cannot read this agent's seat: %w", err)
	}
	if len(answer.Kvs) == 0 {
		s.cancel(ErrFull) // it came together with the last one
		return World{}, ErrFull
	}
	w := *s.world
	w.Seat, err = decode[Seat](key, answer.Kvs[0].Value)
	return w, err
}

// Verdict is how the job ended, nil while it has not.
func (s *Session) Verdict() *Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verdict
}

// close ends what Join has started. Without a goodbye the leader takes this agent
// for lost, and does not wait for it.
func (s *Session) close(cause error, goodbye bool) {
	s.cancel(cause)
	if s.stream != nil && goodbye {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.stream.Leave(ctx)
	} else if s.stream != nil {
		s.stream.Abandon()
	}
	s.watching()
	s.wg.Wait()
	s.lose(cause)
}
