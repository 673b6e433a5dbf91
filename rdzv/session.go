package rdzv

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

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

	ctx       context.Context // the job's; ends with the verdict, or the store's loss
	cancel    context.CancelCauseFunc
	store     context.Context // ends when the store is lost, or cannot be followed
	loseStore context.CancelCauseFunc
	stream    *presence.Stream // nil in the process of the store
	stopWatch context.CancelFunc
	wg        sync.WaitGroup

	haveWorld   chan struct{} // closed when world is set
	haveSettled chan struct{} // closed when settlement is set

	mu      sync.Mutex
	world   *World
	verdict *Verdict
	settled *settled

	leaveOnce sync.Once
	summary   Summary
	leaveErr  error
}

// Context lives as long as the job runs. The cause of its end is a *[Verdict],
// [ErrStoreLost] or [ErrFull], or what keeps this agent from following the job; any
// error after Leave.
func (s *Session) Context() context.Context { return s.ctx }

// Verdict is how the job ended, nil while it has not.
func (s *Session) Verdict() *Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verdict
}

// untilStoreLost returns ctx, ended by the loss of the store.
func (s *Session) untilStoreLost(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.store, func() { cancel(context.Cause(s.store)) })
	return ctx, func() { stop(); cancel(nil) }
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
	s.stopWatch()
	s.wg.Wait()
	s.loseStore(cause)
}
