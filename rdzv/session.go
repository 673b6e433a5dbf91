package rdzv

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/presence"
)

// Config describes an agent and the job that it joins.
type Config struct {
	Job     string // name of the job, required; no other job in the store has it
	Attempt int    // which attempt at running the workers; 0 is the first
	Self    Member // this agent

	// JoinBy is when this agent stops waiting for the others, which ends the job for all
	// agents; zero is never.
	JoinBy time.Time

	// SettleTimeout is how long after the verdict the slowest agent may take to stop its
	// workers; Leave waits a little longer for the others. Default 15 s: a grace of 10 s
	// plus 5 s.
	SettleTimeout time.Duration

	// ConnectTimeout is how long Join tries to connect to the store after a first attempt
	// has failed; default 2 s. There is no limit before that: a store that serves
	// thousands of agents answers late, but only a lost store fails.
	ConnectTimeout time.Duration
}

const (
	defaultSettleTimeout  = 15 * time.Second
	defaultConnectTimeout = 2 * time.Second
)

// Session is an agent's participation in a job, from Join to Leave. Its methods are safe
// for concurrent use.
type Session struct {
	config Config
	client *clientv3.Client
	keys   keys

	ctx       context.Context // the job's; ends with the verdict or the loss of the store
	cancel    context.CancelCauseFunc
	store     context.Context // ends when the store is lost or cannot be watched
	loseStore context.CancelCauseFunc
	stream    *presence.Stream // nil in the process that hosts the store
	stopWatch context.CancelFunc
	wg        sync.WaitGroup

	haveWorld   chan struct{} // closed when world is set
	haveSettled chan struct{} // closed when settled is set

	mu      sync.Mutex
	world   *World
	verdict *Verdict
	settled *settled

	leaveOnce sync.Once
	summary   Summary
	leaveErr  error
}

// Context returns a context that ends with the job. The cause is a *[Verdict],
// [ErrStoreLost] or [ErrFull], or an error if a signal of the job cannot be read. After
// Leave it may be any error.
func (s *Session) Context() context.Context { return s.ctx }

// Verdict returns how the job ended, nil while it has not.
func (s *Session) Verdict() *Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verdict
}

// untilStoreLost returns a context that also ends when the store is lost.
func (s *Session) untilStoreLost(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.store, func() { cancel(context.Cause(s.store)) })
	return ctx, func() { stop(); cancel(nil) }
}

// close stops what Join has started. Without a goodbye, the leader regards this agent as
// lost and does not wait for it.
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
