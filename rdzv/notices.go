package rdzv

import (
	"time"

	rules "rdzv/rdzv/internal/job"
	"rdzv/rdzv/internal/registration"
)

// rules is the configuration for the state that decides.
func (c *LeaderConfig) rules(t *registration.Turn) rules.Config {
	config := rules.Config{
		Job: c.Job, Attempt: c.Attempt, Tasks: c.Tasks, MinTasks: c.MinTasks, LastCall: c.LastCall,
		Spares: c.Spares, Replaceable: c.Replaceable, Restarts: c.Restarts,
		PeerTimeout: c.PeerTimeout, LostGrace: c.LostGrace,
		SettleTimeout: c.SettleTimeout, ExitTimeout: c.ExitTimeout,
		Nodes: c.Nodes, Unattended: c.Unattended, Refused: c.Refused, OtherVersion: c.OtherVersion,
		Straggling: c.Straggling != nil,
		Elected:    t.Elected(), ReturnTime: c.returnsWithin(),
		AllReturnTime: registration.AllReturnTime,
		Revoked:       t.Revoked, LeaseTTL: t.LeaseTTL, LeaseLag: leaseLag,
		StragglingAfter: c.stragglingAfter,
	}
	if c.Waiting != nil {
		config.NextWaiting = c.NextWaiting
	}
	return config
}

// tell calls the callback for a notice, if there is one.
func (c *LeaderConfig) tell(notice rules.Notice) {
	switch n := notice.(type) {
	case rules.Waiting:
		c.Waiting(n.Roster, n.After)
	case rules.Compared:
		if c.Compared != nil {
			c.Compared(n.All, n.Strict)
		}
	case rules.Straggling:
		c.Straggling(n.Stragglers)
	case rules.Warning:
		if c.Warn != nil {
			c.Warn(n.Err)
		}
	}
}

// leaseLag is how much later than at the end of its lease an agent may be lost: etcd looks for such
// leases twice a second, and counts in seconds; and the agent may register again.
const leaseLag = 2*time.Second + registration.ReturnTime
