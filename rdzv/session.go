package rdzv

import (
	"context"
	"errors"
	"os"
	"sync/atomic"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/questions"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/internal/registration"
	"rdzv/rdzv/internal/signals"
)

// errLeft is the cause of the end of [Session.Context] if the agent left before the job ended.
var errLeft = errors.New("this agent has left the job")

// Session is an agent's participation in a job, from Join to Leave. Its methods are safe
// for concurrent use.
type Session struct {
	config       Config
	registration *registration.Registration // of all attempts
	keys         keys.Attempt
	late         bool // it joins this attempt, which runs, to wait for the next one

	life      *life
	signals   *signals.Signals
	verdicts  *verdicts
	outcomes  *outcomes
	questions *questions.Agent

	seat   atomic.Pointer[Seat] // set by World
	ending atomic.Bool          // this agent has received a signal that ends the attempt
	leave  leaving
}

// withdrawnSeat is that of an agent that has withdrawn before it got one.
var withdrawnSeat = record.SpareSeat

// newSession returns the session of one attempt, which has not joined.
func newSession(r *registration.Registration, c Config) *Session {
	store := kv.NewStore(r.Store.Context(), r.Store.Client)
	k := r.Run.Keys.Attempt(c.Attempt)
	s := &Session{config: c, registration: r, keys: k, life: newLife(store)}
	s.verdicts = &verdicts{store: store, keys: k, self: c.Self, lease: r.Run.JobLease}
	s.outcomes = &outcomes{
		store: store, keys: k, self: c.Self, lease: r.Lease(), jobLease: r.Run.JobLease,
	}
	s.questions = &questions.Agent{
		Store: store, Keys: k, Self: Peer{
			ID: c.Self.ID, Host: c.Self.Host, PID: c.Self.PID, Tasks: len(c.Self.Tasks),
		},
		Seat: func() (own Seat) {
			if seat := s.seat.Load(); seat != nil {
				own = *seat
			}
			return own
		},
		Answers: c.Answer, Compacts: !r.Elects(), Keep: c.keepHistory,
		Agreed: func() bool { return s.signals.World.Load() != nil },
	}
	s.signals = signals.New(store, k, c.Self.ID, signals.Handlers{
		Verdict:  func(v *Verdict) { s.life.cancel(v) },
		Left:     s.life.withdraw,
		Question: func(value []byte) { s.questions.Reply(s.life.answering, value) },
		Invalid:  s.life.cancel,
		Lost:     func(why error) { store.Lose(watchLost(c.Job, why)) },
	})
	return s
}

// watchLost is why the store is lost whose watch has ended; err is nil if it gave no reason.
func watchLost(job string, err error) error {
	if err == nil {
		return ErrStoreLost
	}
	return kv.Lost("cannot watch job %q: %v", job, err)
}

// Context returns a context that ends with the job. The cause is a *[Verdict], [ErrStoreLost] or
// [ErrFull], or an error if a signal of the job cannot be read. After Leave it may be any error.
func (s *Session) Context() context.Context { return s.life.ctx }

// Presence returns a context that ends when the store does not know this agent any more, so that
// the others consider it lost, or when it has left the job. It is the same in all attempts.
func (s *Session) Presence() context.Context { return s.registration.Store.Context() }

// Leads tells whether this agent leads the job, or led it when all had settled: it hosts the store,
// or has been elected in a store that no agent hosts.
func (s *Session) Leads() bool { return s.config.Self.Hosting || s.registration.Leads() }

// Verdict returns how the job ended, nil while it has not. When all have settled it may be another
// one than before, see MayBeConsequence.
func (s *Session) Verdict() *Verdict { return s.signals.Verdict() }

// MayBeConsequence tells whether the verdict is that a worker failed because it lost its connection
// to another one, in a store where the loss of that one's agent may become known later. Then that
// loss is the verdict when all have settled.
func (s *Session) MayBeConsequence() bool {
	v := s.signals.Reported()
	return v != nil && v.MayBeConsequence() && s.registration.Elects()
}

// Hold returns a duplicate of the socket of this agent's connection to the store, if another agent
// hosts that; otherwise nil. Each process that starts workers of this agent must have it before
// the first one runs, and close it when nothing is left of what it has started: the end of the
// connection then proves that nothing runs, and the next attempt does not wait for the end of a
// lease.
func (s *Session) Hold() (*os.File, error) { return s.registration.Hold() }

// Vanish makes this agent, of which no process runs, lost to the job at once, so that another one
// can take its place in the next attempt.
func (s *Session) Vanish() { s.close(errLeft, registration.Empty) }

// close ends the session. After a parting that is no goodbye the leader regards this agent as lost
// and does not wait for it.
func (s *Session) close(cause error, parting registration.Parting) {
	s.life.stop(cause)
	s.registration.Leave(parting)
	s.life.end(cause, s.signals)
	s.registration.Store.Lose(cause)
}
