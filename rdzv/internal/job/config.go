package job

import (
	"cmp"
	"time"

	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/restart"
)

// Rules are what the user of a job decides and its leader applies. Each has its flag in
// parentheses, as the fields of agent.Config.
type Rules struct {
	// Restarts (--max-restarts, --no-restart-on) says after which failures all workers of the job are
	// started again. The zero value is: after none.
	Restarts restart.Policy
	// Spares (--spares) is how many agents of the job run no workers until they take over the ranks of
	// a lost one. All agents must have the same.
	Spares int
	// LastCall (--last-call) is how long a job with a variable number of tasks waits for more of them
	// when as many as it needs have joined.
	LastCall time.Duration
	// ExitTimeout (--exit-timeout) stops the workers that still run so long after the first one
	// succeeded; 0 never does.
	ExitTimeout time.Duration
}

// Config describes the job to lead.
type Config struct {
	Rules
	Job     string // name of the job, required; no other job in the store has it
	Attempt int    // number of the first attempt; 0 in an etcd cluster
	// Tasks is the number of tasks of the job, required. Without a launcher each agent is a task.
	Tasks int
	// MinTasks is for a job with a variable number of tasks, of which Tasks is the largest one: how
	// many it needs to start, and to go on after a loss; 0 is Tasks. Such a job has no spares.
	MinTasks int
	// Nodes are the names of the nodes on which the launcher starts agents, for messages; nil if
	// they are not known.
	Nodes []string
	// Unattended says that no launcher reports what has happened to agents that are missing.
	Unattended bool
	// Refused returns the agents that cannot join because their tokens differ, OtherVersion those
	// whose version of the protocol does. Both may be nil.
	Refused, OtherVersion func() []string
	// Replaceable says that the next attempt waits for another agent in place of one that is lost,
	// until the join timeout. Otherwise the loss of an agent ends the job.
	Replaceable bool
	// PeerTimeout is that of a store that an agent hosts, for the agents of a job with restarts. 0 in
	// other stores.
	PeerTimeout time.Duration
	// LostGrace is how long the workers of an agent that takes itself for lost may run before they are
	// killed, in a job with restarts: at most MaxLostGrace. After such a loss the next attempt starts
	// that much later, and another second.
	LostGrace time.Duration
	// SettleTimeout is how long after the verdict the slowest agent may take to stop its workers, or
	// another one to notice that it is lost. Default 15 s: a grace of 10 s plus 5 s.
	SettleTimeout time.Duration

	// Notify is called with what needs no answer, in the goroutine of the leader: it must return soon.
	// May be nil.
	Notify func(Notice)
	// NextWaiting returns how long after the beginning Waiting is the next notice, later than last:
	// the same for the one before, or 0 at first. nil is never.
	NextWaiting func(last time.Duration) time.Duration
	// StragglingAfter is how long after the first success Stragglers is a notice. Default 10 s.
	StragglingAfter time.Duration
	// ReturnTime is how long after the end of its lease, in a store that no agent hosts, an agent may
	// register again. Default 1 s.
	ReturnTime time.Duration
}

// No worker of an attempt may run when one of the next attempt starts, also if its agent is frozen
// or disconnected. An agent that the store has not answered takes itself for lost before any other
// agent does: the time counts from when it sent the last message that was answered. From then on
// its workers may run for LostGrace. The leader, which learns of the loss later, waits longer.

// MaxLostGrace is the largest Config.LostGrace.
const MaxLostGrace = 4 * time.Second

// Valid tells whether the numbers of tasks and spares, and the grace, are possible.
func (c *Config) Valid() bool {
	return c.LostGrace >= 0 && c.LostGrace <= MaxLostGrace && c.Tasks >= 1 &&
		c.Spares >= 0 && c.Spares < c.Tasks && c.MinTasks >= 0 &&
		c.MinTasks <= c.Tasks && (c.MinTasks == 0 || c.Spares == 0)
}

// Replaces tells whether another agent may take the place of a lost one, or join late.
func (c *Config) Replaces() bool {
	return c.Restarts.Max > 0 && (c.Replaceable || c.Spares > 0 || c.elastic())
}

// Store is what the leader knows of the store of its job.
type Store struct {
	// Elected says that the store belongs to no agent, so that the leader may be another one later.
	Elected bool
	// AllReturnTime is Config.ReturnTime if Revoked says that the lease of this agent was revoked a
	// short time ago although it lived: those of others may have been revoked long before they would
	// have ended. Nil: never.
	AllReturnTime time.Duration
	Revoked       func() bool
	// LeaseTTL is that of the agents' leases, and LeaseLag how much later than at its end the loss
	// may be known.
	LeaseTTL, LeaseLag time.Duration
}

// settings are those of a State.
type settings struct {
	Config
	Store
}

const (
	defaultSettleTimeout   = 15 * time.Second
	defaultStragglingAfter = 10 * time.Second
	defaultReturnTime      = time.Second
)

// Complete sets the defaults.
func (c *Config) Complete() {
	c.SettleTimeout = cmp.Or(c.SettleTimeout, defaultSettleTimeout)
	c.StragglingAfter = cmp.Or(c.StragglingAfter, defaultStragglingAfter)
	c.ReturnTime = cmp.Or(c.ReturnTime, defaultReturnTime)
}

func (s *Store) revoked() bool { return s.Revoked != nil && s.Revoked() }

// elastic tells whether the number of tasks may vary, from MinTasks to Tasks. The seat of a lost
// agent is not vacant then: the next attempt consists of those that remain and of those that have
// joined meanwhile.
func (c *Config) elastic() bool { return c.MinTasks > 0 }

// identity returns SeatValue.Agent, by which a later leader knows an agent whose own keys are gone;
// nil if there is no later leader.
func (s *Store) identity(m record.Member) *record.Member {
	if !s.Elected {
		return nil
	}
	return new(m.Identity())
}

// returnTime is how long an agent may take to register again: more than usual if the leases of all
// agents may have been revoked.
func (c *settings) returnTime() time.Duration {
	if c.revoked() {
		return c.AllReturnTime
	}
	return c.ReturnTime
}
