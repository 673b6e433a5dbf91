package rdzv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/restart"
)

// Config describes an agent and the job that it joins.
type Config struct {
	Job     string // name of the job, required; no other job in the store has it
	Attempt int    // which attempt at running the workers; 0 is the first, required in an etcd cluster
	Self    Member // this agent

	// Prepare, if set, completes Self before this agent becomes a member: it may wait for files that
	// do not respond, at most until its ctx ends. Meanwhile the agent is known to the others, with
	// Waits, one line that says what it waits for.
	Prepare func(ctx context.Context) (Member, error)
	Waits   string

	// JoinBy is when this agent stops waiting for the others, which ends the job for all
	// agents; zero is never.
	JoinBy time.Time

	// SettleTimeout is how long after the verdict the slowest agent may take to stop its workers, or
	// another one to notice that it is lost; Leave waits a little longer for the others. Default 15 s:
	// a grace of 10 s plus 5 s.
	SettleTimeout time.Duration

	// ConnectTimeout is how long Join tries to connect to the store after a first attempt
	// has failed; default 2 s. There is no limit before that: a store that serves
	// thousands of agents answers late, but only a lost store fails.
	ConnectTimeout time.Duration

	// PeerTimeout is the TTL of this agent's lease in a store that no agent hosts: the others consider
	// it lost when it has not renewed that for so long. In a job with restarts (Lead) it is at least
	// StoreTimeout. Default and minimum are those of package presence. All agents should have the same
	// one.
	PeerTimeout time.Duration
	// Prefix is that of all keys in such a store, with a slash at its end. "" is DefaultPrefix.
	Prefix string
	// StoreTimeout is how long such a store may not answer before it is lost. Default: PeerTimeout.
	StoreTimeout time.Duration
	// Renewed is called with a time, by CLOCK_BOOTTIME, until which no other agent considers this one
	// lost, and with a later one each time that the store has answered this agent: in a store that an
	// agent hosts only after a world that another attempt may follow. It must return soon. May be nil.
	Renewed func(until time.Duration)
	// Delayed is called if the job in such a store has no place for this agent, for the given reason,
	// but those who have it may have been killed: Join then waits until their leases have expired, at
	// most that long, or have been renewed. May be nil.
	Delayed func(reason error, atMost time.Duration)
	// Lead is how this agent leads the job in such a store, in which the agents elect the leader; its
	// Job and Attempt are ignored. Required there.
	Lead *LeaderConfig

	// Answer answers the questions of other agents, see Session.Ask, with at most MaxAnswer bytes. It
	// must return soon after its ctx has ended; there may be several calls at a time. nil answers
	// none.
	Answer func(context.Context, Question) ([]byte, error)

	keepHistory time.Duration // instead of 1 min, in tests
	jobTTL      time.Duration // of the job's lease, in tests
}

const (
	defaultSettleTimeout  = 15 * time.Second
	defaultConnectTimeout = 2 * time.Second
)

// ErrClosed is returned by [Join] if the job in this store has ended. The agent then
// looks for another store: one launcher may run several jobs one after another.
var ErrClosed = errors.New("the job in this store has ended")

// ErrFull is returned by [Join] and [Session.World] if the job in this store already has
// all its agents.
var ErrFull = errors.New("the job in this store already has all its agents")

// OccupiedError is returned by [Join] if the job already has another agent on this host, and the
// two have neither ranks of a launcher nor different node ranks. The job goes on without this
// agent.
type OccupiedError struct {
	Host string
	PID  int // of the other agent

	lease clientv3.LeaseID // of the other agent, in a store that no agent hosts
}

func (e *OccupiedError) Error() string {
	return fmt.Sprintf("the job already has an agent on this host: pid %d on %s", e.PID, e.Host)
}

// ErrStoreLost is the cause of the end of [Session.Context] if the connection to the store, and so
// to the agent that hosts it, is lost. Calls that need the store return it too.
var ErrStoreLost = errors.New("lost the store")

// errLeft is the cause of the end of [Session.Context] if the agent left before the job ended.
var errLeft = errors.New("this agent has left the job")

// Session is an agent's participation in a job, from Join to Leave. Its methods are safe
// for concurrent use.
type Session struct {
	config Config
	client *clientv3.Client
	keys   keys

	registration *registration // of all attempts

	store     context.Context // of this attempt: ends with the registration or when its signals end
	loseStore context.CancelCauseFunc
	ctx       context.Context // the job's; ends with the verdict or with store
	cancel    context.CancelCauseFunc
	caller    atomic.Bool // see ByCaller
	stopWatch context.CancelFunc
	wg        sync.WaitGroup

	returns   bool // this agent was a member of the attempt before
	announced bool // it has its place already, see Config.Prepare
	late      bool // it joins this attempt, which runs, to wait for the next one

	answering   context.Context // of answers to other agents; ends with store or at Leave
	stopAnswers context.CancelFunc
	asked       history // by this agent

	verdict     atomic.Pointer[Verdict]
	verdictAt   atomic.Pointer[time.Time] // when it arrived; set before verdict
	ending      atomic.Bool               // this agent has received a signal that ends the attempt
	withdrawn   atomic.Bool               // it has left without workers
	world       atomic.Pointer[World]
	haveWorld   chan struct{}           // closed when world is set
	seat        atomic.Pointer[Seat]    // set by World
	exports     atomic.Pointer[Exports] // set before world, if at all
	start       atomic.Pointer[started]
	haveStart   chan struct{} // closed when start is set
	release     atomic.Pointer[release]
	released    chan struct{} // closed when release is set
	absent      atomic.Pointer[Unreached]
	haveAbsent  chan struct{}     // closed when absent is set
	progress    chan InitProgress // that the leader has reported
	look        atomic.Pointer[look]
	haveLook    chan struct{} // closed when look is set
	settled     atomic.Pointer[settled]
	haveSettled chan struct{} // closed when settled is set
	sharing     *sharing

	leaveOnce sync.Once
	summary   Summary
	leaveErr  error
}

// Summary is what an agent knows about the job when it leaves.
type Summary struct {
	// Verdict is how the job ended; nil if the store was lost before there was one.
	Verdict *Verdict
	// Code is the exit code of a job that a signal ended, otherwise 0. It depends on how the workers
	// reacted to the signal. That of the worker that failed first is Verdict.Code.
	Code int
	// Settled is true if every agent has settled or was lost.
	Settled bool
	// Unsettled names the agents that had not settled at the timeout, for people.
	Unsettled string
	// Unreported is true if the agent whose worker failed first was lost before all had settled, so
	// that another agent must report the failure.
	Unreported bool
	// Successes are the workers that succeeded shortly before the one that failed first; nil if there
	// are none.
	Successes *Successes
	// Restart is the next attempt, which this agent must join with [Session.Next]; nil if there is
	// none. After a failure in a job with restarts, NoRestart then says why.
	Restart   *Restart
	NoRestart restart.Reason
	// Withdrawn says that Restart is without this agent: it has left the job, see [Session.Withdraw].
	Withdrawn bool
	// Failures are the other workers that failed before they were stopped, in the order
	// of the store. Only the agent that reports the failure has them: the one that the
	// verdict is about, or the host of the store if an agent was lost.
	Failures []Failure
}

// Failure is a worker that failed, and its node.
type Failure struct {
	Host string
	Worker
}

// Context returns a context that ends with the job. The cause is a *[Verdict], [ErrStoreLost] or
// [ErrFull], or an error if a signal of the job cannot be read. After Leave it may be any error.
func (s *Session) Context() context.Context { return s.ctx }

// Presence returns a context that ends when the store does not know this agent any more, so that
// the others consider it lost, or when it has left the job. It is the same in all attempts.
func (s *Session) Presence() context.Context { return s.registration.present }

// Leads tells whether this agent leads the job, or led it when all had settled: it hosts the store,
// or has been elected in a store that no agent hosts.
func (s *Session) Leads() bool { return s.config.Self.Hosting || s.registration.leads.Load() }

// Verdict returns how the job ended, nil while it has not. When all have settled it may be another
// one than before, see MayBeConsequence.
func (s *Session) Verdict() *Verdict {
	if all := s.settled.Load(); all != nil && all.Cause != nil {
		return all.Cause
	}
	return s.verdict.Load()
}

// MayBeConsequence tells whether the verdict is that a worker failed because it lost its connection
// to another one, in a store where the loss of that one's agent may become known later. Then that
// loss is the verdict when all have settled.
func (s *Session) MayBeConsequence() bool {
	v := s.verdict.Load()
	return v != nil && v.MayBeConsequence() && s.registration.elects
}

// untilStoreLost returns a context that also ends when the store is lost.
func (s *Session) untilStoreLost(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	lost := func() { cancel(context.Cause(s.store)) }
	if s.store.Err() != nil {
		lost() // AfterFunc would be too late: nothing is written in an attempt that has been left
	}
	stop := context.AfterFunc(s.store, lost)
	return ctx, func() { stop(); cancel(nil) }
}

// close stops what Join has started. Without a goodbye, the leader regards this agent as
// lost and does not wait for it.
func (s *Session) close(cause error, goodbye bool) {
	s.cancel(cause)
	s.stopAnswers()
	s.registration.leave(goodbye)
	s.closeAttempt(cause)
	s.registration.vanish(cause)
}

// closeAttempt stops what belongs to this attempt alone. Calls for it that still run end.
func (s *Session) closeAttempt(cause error) {
	s.cancel(cause)
	s.stopAnswers()
	s.stopWatch()
	s.wg.Wait()
	s.loseStore(cause)
}
