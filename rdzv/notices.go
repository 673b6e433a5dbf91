package rdzv

import (
	"cmp"
	"context"
	"time"

	rules "rdzv/rdzv/internal/job"
)

// rules is the configuration for the state that decides.
func (l *Leader) rules() rules.Config {
	c, t := l.config, &l.term
	config := rules.Config{
		Job: c.Job, Attempt: c.Attempt, Agents: c.Agents, MinAgents: c.MinAgents, LastCall: c.LastCall,
		Spares: c.Spares, Replaceable: c.Replaceable, Restarts: c.Restarts,
		PeerTimeout: c.PeerTimeout, LostGrace: c.LostGrace,
		SettleTimeout: c.SettleTimeout, ExitTimeout: c.ExitTimeout,
		Nodes: c.Nodes, Unattended: c.Unattended, Refused: c.Refused, OtherVersion: c.OtherVersion,
		Watch: c.Init != nil, Straggling: c.Straggling != nil,
		Elected: l.elected(), ReturnTime: cmp.Or(c.returnTime, returnTime), AllReturnTime: allReturnTime,
		Revoked: t.revoked, LeaseTTL: t.leaseTTL, LeaseLag: leaseLag,
		StragglingAfter: c.stragglingAfter, InitTimes: c.initTimes,
	}
	if c.Waiting != nil {
		config.NextWaiting = c.NextWaiting
	}
	if c.Check != nil {
		config.Check = &rules.Check{Gathered: c.Check.Gathered, Peers: c.Check.Peers}
	}
	return config
}

// tell calls the callback for a notice, if there is one.
func (l *Leader) tell(ctx context.Context, notice rules.Notice) {
	c := &l.config
	switch n := notice.(type) {
	case rules.Waiting:
		c.Waiting(n.Roster, n.After)
	case rules.Compared:
		if c.Compared != nil {
			c.Compared(n.All, n.Strict)
		}
	case rules.Straggling:
		c.Straggling(n.Stragglers)
	case rules.Init:
		c.Init(n.InitProgress)
	case rules.Warning:
		if c.Warn != nil {
			c.Warn(n.Err)
		}
	case rules.Forgotten:
		// It fails if it has been done after a later question.
		_, _ = l.client.Compact(ctx, n.Rev)
	}
}

// leaseLag is how much later than at the end of its lease an agent may be lost: etcd looks for such
// leases twice a second, and counts in seconds; and the agent may register again.
const leaseLag = 2*time.Second + returnTime
