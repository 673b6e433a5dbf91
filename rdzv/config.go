package rdzv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"rdzv/rdzv/internal/questions"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/internal/registration"
	"rdzv/rdzv/presence"
)

// Config describes an agent and the job that it joins.
type Config struct {
	Job     string // name of the job, required; no other job in the store has it
	Attempt int    // which attempt at running the workers; 0 is the first, required in an etcd cluster
	Self    Member // this agent

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
	// Outlives is how long this agent's workers may run after such a store has answered it the last
	// time, if no other attempt may follow theirs: StoreTimeout and what it takes to end them. A later
	// run of the job begins only when they must have ended. 0 if the job has no workers.
	Outlives time.Duration
	// Renewed is called with a time, by CLOCK_BOOTTIME, until which no other agent considers this one
	// lost, and with a later one each time that the store has answered this agent: in a store that an
	// agent hosts only after a world that another attempt may follow. It must return soon. May be nil.
	Renewed func(until time.Duration)
	// Delayed is called if the job in such a store has no place for this agent, for the given reason,
	// but those who have it may have been killed: Join then waits until their leases have expired, at
	// most that long, or have been renewed. It is also called with an *[EarlierRunError] if all are
	// gone, but their workers may run: Join then waits until these must have ended. May be nil.
	Delayed func(reason error, atMost time.Duration)
	// Lead is how this agent leads the job in such a store, in which the agents elect the leader; its
	// Job and Attempt are ignored. Required there.
	Lead *LeaderConfig

	// Answer answers the questions of other agents, see Session.Ask, with at most MaxAnswer bytes. It
	// must return soon after its ctx has ended; there may be several calls at a time. nil answers
	// none.
	Answer func(context.Context, Question) ([]byte, error)

	// ReadDetails lets Summary have the details of all workers also on the agent that leads the job,
	// and on that of rank 0.
	ReadDetails bool
	// ReadFailure lets Summary have the detail of the worker that failed first.
	ReadFailure bool

	keepHistory time.Duration // instead of 1 min, in tests
	jobTTL      time.Duration // of the job's lease, in tests
}

const (
	defaultSettleTimeout  = 15 * time.Second
	defaultConnectTimeout = 2 * time.Second
)

// complete sets the defaults.
func (c *Config) complete() {
	c.SettleTimeout = cmp.Or(c.SettleTimeout, defaultSettleTimeout)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, defaultConnectTimeout)
	c.keepHistory = cmp.Or(c.keepHistory, questions.DefaultKeep)
	c.Prefix = cmp.Or(c.Prefix, DefaultPrefix)
	c.PeerTimeout = cmp.Or(c.PeerTimeout, presence.DefaultTimeout)
	c.StoreTimeout = cmp.Or(c.StoreTimeout, c.PeerTimeout)
	if c.Lead != nil {
		lead := *c.Lead
		lead.Job, lead.Attempt = c.Job, 0
		lead.SettleTimeout = cmp.Or(lead.SettleTimeout, c.SettleTimeout)
		lead.Complete()
		c.Lead = &lead
		if lead.Restarts.Max > 0 { // its workers run that long without an answer
			c.PeerTimeout = max(c.PeerTimeout, c.StoreTimeout)
		}
	}
	// So long that a leader of the cluster that was frozen for less than 20 s does not revoke the
	// lease of the job, and that the job outlives its workers: an agent that loses the store may have
	// renewed this lease three fifths of the TTL ago.
	c.jobTTL = cmp.Or(c.jobTTL, max(2*c.PeerTimeout+30*time.Second, c.Outlives*5/2))
}

// completeSelf checks the member, and limits what it has.
func (c *Config) completeSelf() error {
	if c.Job == "" {
		return errors.New("cannot join a job without a name")
	}
	if err := c.Self.Check(); err != nil {
		return fmt.Errorf("cannot join job %q: %w", c.Job, err)
	}
	c.Self.Problems = record.ClippedProblems(c.Self.Problems)
	c.Self.Rank0Problems = record.ClippedProblems(c.Self.Rank0Problems)
	c.Self.Facts = c.Self.Facts.Clipped()
	if !c.JoinBy.IsZero() {
		c.Self.JoinWithin = max(1, time.Until(c.JoinBy))
	}
	return nil
}

// checkLease says why the agent cannot register in a store that no agent hosts; nil if it can.
func (c *Config) checkLease() error {
	switch {
	case c.Lead == nil || !c.Lead.Valid():
		return fmt.Errorf("cannot join job %q: no agent hosts this store, and Config.Lead, "+
			"with which this agent can lead the job, has no agents or too many spares", c.Job)
	case c.Attempt != 0:
		return fmt.Errorf("cannot join attempt %d of job %q: no agent hosts this store, and the "+
			"attempt in such a store is that of the job", c.Attempt, c.Job)
	case c.PeerTimeout < presence.MinTimeout:
		return fmt.Errorf("cannot join job %q with peer timeout %v: the minimum is %v",
			c.Job, c.PeerTimeout, presence.MinTimeout)
	}
	return nil
}

// registration is how the agent registers.
func (c *Config) registration() registration.Config {
	r := registration.Config{
		Job: c.Job, Prefix: c.Prefix, Self: c.Self, ConnectTimeout: c.ConnectTimeout,
		Renewed: c.Renewed, NoLease: c.checkLease(),
		PeerTimeout: c.PeerTimeout, StoreTimeout: c.StoreTimeout, JobTTL: c.jobTTL,
		Outlives: c.Outlives,
	}
	if c.Lead != nil {
		r.ReturnTime, r.LostGrace = c.Lead.ReturnTime, c.Lead.LostGrace
	}
	return r
}

// leaveMargin is how much longer than the leader an agent waits until all have settled.
const leaveMargin = 2 * time.Second

// settleLimit is how long after the verdict all have settled. In a store that no agent hosts the
// leader may be lost meanwhile: ttl is that of the agents' leases.
func (c *Config) settleLimit(ttl time.Duration) time.Duration {
	return c.SettleTimeout + leaveMargin + ttl
}
