package rdzv

import (
	"cmp"
	"time"

	"rdzv/rdzv/internal/registration"
	"rdzv/rdzv/restart"
)

// LeaderConfig describes the job to lead. Run calls the callbacks in its own goroutine, so
// they must return soon.
type LeaderConfig struct {
	Job     string // as in Config
	Attempt int    // as in Config
	// Tasks is the number of tasks of the job, required. Without a launcher each agent is a task.
	Tasks int

	// MinTasks is for a job with a variable number of tasks, of which Tasks is the largest one: how
	// many it needs to start, and to go on after a loss; 0 is Tasks. Such a job has no spares.
	MinTasks int
	// LastCall is how long such a job waits for more than MinTasks when so many have joined.
	LastCall time.Duration

	// Nodes are the names of the nodes on which the launcher starts agents, for messages; nil if
	// they are not known.
	Nodes []string

	// Unattended says that no launcher reports what has happened to agents that are missing.
	Unattended bool
	// Refused returns the agents that cannot join because their tokens differ, OtherVersion those
	// whose version of the protocol does. Both may be nil.
	Refused, OtherVersion func() []string

	// SettleTimeout is as in Config.
	SettleTimeout time.Duration
	// ExitTimeout ends the job this long after the first worker succeeded if others still
	// run; 0 is no limit.
	ExitTimeout time.Duration

	// Waiting is called while agents are missing, at times that NextWaiting determines. May be nil.
	Waiting func(Roster, time.Duration)
	// NextWaiting returns how long after Run's beginning Waiting is called next, later than last: the
	// same for the call before, or 0 at first. Required with Waiting.
	NextWaiting func(last time.Duration) time.Duration
	// Compared is called with the facts of all members when all have joined, before any worker
	// starts. strict tells whether differences are problems (Member.Strict). May be nil.
	Compared func(all []Comparison, strict bool)
	// Straggling is called once if workers still run 10 s after another one succeeded. May be nil.
	Straggling func(Stragglers)
	// Restarts says after which failures the agents form another attempt. The zero value is: after
	// none.
	Restarts restart.Policy
	// Spares is how many of the agents run no workers until they take over the seat of a lost one.
	Spares int
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
	// Warn is called with what does not end the job, for people. May be nil.
	Warn func(error)

	stragglingAfter time.Duration // instead of 10 s, in tests
	returnTime      time.Duration // instead of 1 s, in tests
}

// No worker of an attempt may run when one of the next attempt starts, also if its agent is frozen
// or disconnected. An agent that the store has not answered takes itself for lost before any other
// agent does: the time counts from when it sent the last message that was answered. From then on
// its workers may run for LostGrace. The leader, which learns of the loss later, waits longer.

// MaxLostGrace is the largest LeaderConfig.LostGrace.
const MaxLostGrace = 4 * time.Second

// valid tells whether the numbers of tasks and spares, and the grace, are possible.
func (c *LeaderConfig) valid() bool {
	return c.LostGrace >= 0 && c.LostGrace <= MaxLostGrace && c.Tasks >= 1 &&
		c.Spares >= 0 && c.Spares < c.Tasks && c.MinTasks >= 0 &&
		c.MinTasks <= c.Tasks && (c.MinTasks == 0 || c.Spares == 0)
}

// replaces tells whether another agent may take the place of a lost one, or join late.
func (c *LeaderConfig) replaces() bool {
	return c.Restarts.Max > 0 && (c.Replaceable || c.Spares > 0 || c.MinTasks > 0)
}

// returnsWithin is how long an agent may take to register again.
func (c *LeaderConfig) returnsWithin() time.Duration {
	return cmp.Or(c.returnTime, registration.ReturnTime)
}
