package rdzv

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/presence"
)

// Config says which job an agent joins, and as what.
type Config struct {
	Job     string // name shared by all agents of this run and by no other run in the store
	Attempt int    // which try at running the workers; 0 is the first
	Self    Member // what this agent says of itself; Self.ID must be unique

	// SettleTimeout is how long after the verdict the slowest agent may take to
	// stop its workers; Leave waits a little longer than that for the others.
	// Default 15 s: a grace of 10 s and 5 s to spare.
	SettleTimeout time.Duration
}

const defaultSettleTimeout = 15 * time.Second

// Session is an agent's part in a job, from Join to Leave.
type Session struct {
	config Config
	client *clientv3.Client
	keys   keys

	ctx        context.Context // the job's; ends with the verdict, or the store's loss
	cancel     context.CancelCauseFunc
	watching   context.CancelFunc
	attendance *presence.Attendance // nil in the process of the store
	wg         sync.WaitGroup

	started chan struct{} // closed when world is set
	gone    chan struct{} // closed when settlement is set
	lost    chan struct{} // closed when the store is lost

	world      World
	settlement settlement

	mu      sync.Mutex
	verdict *Verdict
}

// Join makes this agent a member of the job and returns. It first watches the
// job's signals, so that none is missed, then takes its place on the store's
// roll, then says what it is. ctx bounds the call alone.
//
// It returns [ErrClosed] when the job in this store is over.
func Join(ctx context.Context, client *clientv3.Client, c Config) (*Session, error) {
	if c.SettleTimeout == 0 {
		c.SettleTimeout = defaultSettleTimeout
	}
	s := &Session{
		config: c, client: client, keys: keysOf(c.Job, c.Attempt),
		started: make(chan struct{}), gone: make(chan struct{}), lost: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	if err := s.join(ctx); err != nil {
		s.close(err)
		return nil, err
	}
	return s, nil
}

func (s *Session) join(ctx context.Context) error {
	if err := s.watch(ctx); err != nil {
		return fmt.Errorf("cannot watch job %q: %w", s.config.Job, err)
	}
	if conn := s.client.ActiveConnection(); conn != nil {
		var err error
		if s.attendance, err = presence.Attend(ctx, conn, s.config.Self.ID); err != nil {
			return fmt.Errorf("cannot enter the roll of the store: %w", err)
		}
		s.wg.Go(s.attend)
	}
	return s.announce(ctx)
}

// announce puts the member, unless the job has a verdict already.
func (s *Session) announce(ctx context.Context) error {
	answer, err := s.client.Txn(ctx).
		If(absent(s.keys.verdict())).
		Then(clientv3.OpPut(s.keys.member(s.config.Self.ID), encode(s.config.Self))).
		Commit()
	if err != nil {
		return fmt.Errorf("cannot join job %q: %w", s.config.Job, err)
	}
	if !answer.Succeeded {
		return ErrClosed
	}
	return nil
}

// absent is the condition that makes a put create-only.
func absent(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
}

// Context lives as long as the job runs. The cause of its end is a *[Verdict],
// [ErrStoreLost] or [ErrLeft].
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
	key := s.keys.seat(s.config.Self.ID)
	answer, err := s.client.Get(ctx, key)
	if err != nil {
		return World{}, fmt.Errorf("cannot read this agent's seat: %w", err)
	}
	if len(answer.Kvs) == 0 {
		return World{}, fmt.Errorf("cannot find this agent's seat in job %q", s.config.Job)
	}
	w := s.world
	w.Seat, err = decode[Seat](key, answer.Kvs[0].Value)
	return w, err
}

// attend waits for the loss of the store.
func (s *Session) attend() {
	select {
	case <-s.attendance.Lost():
		close(s.lost)
		s.cancel(ErrStoreLost)
	case <-s.attendance.Left():
	}
}

// close ends what Join has started.
func (s *Session) close(cause error) {
	s.cancel(cause)
	if s.watching != nil {
		s.watching()
	}
	if s.attendance != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.attendance.Leave(ctx)
	}
	s.wg.Wait()
}
