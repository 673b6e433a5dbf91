package job

import (
	"cmp"
	"time"

	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/restart"
)

// The values of keys, and what they consist of.
type (
	Comparison  = record.Comparison
	Exports     = record.Exports
	Latest      = record.Latest
	Loss        = record.Loss
	Member      = record.Member
	NodeProblem = record.NodeProblem
	NodeRanks   = record.NodeRanks
	Outcome     = record.Outcome
	Preparing   = record.Preparing
	Problem     = record.Problem
	Readiness   = record.Readiness
	Replaced    = record.Replaced
	Restart     = record.Restart
	Roster      = record.Roster
	Seat        = record.Seat
	SeatValue   = record.SeatValue
	Seconds     = record.Seconds
	Settled     = record.Settled
	Signal      = record.Signal
	Started     = record.Started
	Straggler   = record.Straggler
	Stragglers  = record.Stragglers
	Successes   = record.Successes
	Verdict     = record.Verdict
	Worker      = record.Worker
	World       = record.World

	failure = restart.Failure
)

// Unknown is a rank or size that the launcher does not provide.
const Unknown = record.Unknown

// Config describes a job, see LeaderConfig of package rdzv.
type Config struct {
	Job             string
	Attempt         int // number of the first attempt
	Tasks, MinTasks int // of the launcher; without one each agent is a task
	LastCall        time.Duration
	Spares          int
	Replaceable     bool
	Restarts        restart.Policy
	PeerTimeout     time.Duration
	LostGrace       time.Duration
	SettleTimeout   time.Duration
	ExitTimeout     time.Duration

	Nodes                 []string
	Unattended            bool
	Refused, OtherVersion func() []string
	// NextWaiting is when Waiting is the next notice, see LeaderConfig; nil is never.
	NextWaiting func(last time.Duration) time.Duration
	// Straggling says that somebody wants that notice.
	Straggling bool

	// Elected says that the store belongs to no agent, so that the leader may be another one later.
	Elected bool
	// ReturnTime is how long after the end of its lease an agent may register again, and
	// AllReturnTime if Revoked says that the lease of this agent was revoked a short time ago
	// although it lived: those of others may have been revoked long before they would have ended.
	// Nil: never.
	ReturnTime, AllReturnTime time.Duration
	Revoked                   func() bool
	// LeaseTTL is that of the agents' leases, and LeaseLag how much later than at its end the loss
	// may be known.
	LeaseTTL, LeaseLag time.Duration

	StragglingAfter time.Duration
}

const (
	defaultSettleTimeout   = 15 * time.Second
	defaultStragglingAfter = 10 * time.Second
)

func (c Config) withDefaults() Config {
	c.SettleTimeout = cmp.Or(c.SettleTimeout, defaultSettleTimeout)
	c.StragglingAfter = cmp.Or(c.StragglingAfter, defaultStragglingAfter)
	return c
}

func (c *Config) revoked() bool { return c.Revoked != nil && c.Revoked() }

// elastic tells whether the number of tasks may vary, from MinTasks to Tasks. The seat of a lost
// agent is not vacant then: the next attempt consists of those that remain and of those that have
// joined meanwhile.
func (c *Config) elastic() bool { return c.MinTasks > 0 }

// identity returns SeatValue.Agent, by which a later leader knows an agent whose own keys are gone;
// nil if there is no later leader.
func (c *Config) identity(m Member) *Member {
	if !c.Elected {
		return nil
	}
	return new(m.Identity())
}

// returnTime is how long an agent may take to register again: more than usual if the leases of all
// agents may have been revoked.
func (c *Config) returnTime(usual time.Duration) time.Duration {
	if c.revoked() {
		return c.AllReturnTime
	}
	return usual
}
