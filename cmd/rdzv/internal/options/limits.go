package options

import (
	"time"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/rdzv/agent"
)

// limits are the flags about checks and time limits.
type limits struct {
	strict        bool
	health        string
	healthTimeout time.Duration

	joinTimeout  time.Duration
	lastCall     time.Duration
	peerTimeout  time.Duration
	grace        time.Duration
	exitTimeout  time.Duration
	stallTimeout time.Duration
	stallAction  string
}

// groups are the flags about checks, times and stalls; signals those about signals.
func (l *limits) groups() []flags.Group {
	return []flags.Group{
		{Title: "Checks before PROGRAM starts", Rows: []flags.Row{
			flags.Flag("--strict", "do not start if nodes differ in the script, python, torch, or "+
				"variables NCCL_*, GLOO_*, TORCH_*, OMP_* (warn)", &l.strict),
			flags.Flag("--health-cmd CMD", "run CMD with /bin/sh on each node before each attempt; a "+
				"node where it fails is replaced by a spare, or the job ends with 123", &l.health),
			flags.Flag("--health-timeout D", "time limit of CMD (1m)", &l.healthTimeout),
		}},
		{Title: "Timeouts, such as 10s, 5m or 1h30m", Rows: []flags.Row{
			flags.Flag("--join-timeout D",
				"wait this long for all agents to join, 0 is no limit (10m)", &l.joinTimeout),
			flags.Flag("--last-call D", "with --nodes MIN:MAX, wait this long for more nodes after MIN "+
				"have joined (30s)", &l.lastCall),
			flags.Flag("--peer-timeout D", "an agent that is silent for this long is lost (10s)",
				&l.peerTimeout),
			flags.Flag("--grace D", "time between SIGTERM and SIGKILL (10s)", &l.grace),
			flags.Flag("--exit-timeout D",
				"stop the remaining workers this long after the first one succeeded (never)",
				&l.exitTimeout),
		}},
		{Title: "A job that makes no progress", Rows: []flags.Row{
			flags.Flag("--stall-timeout D", "the job has stalled if for D all workers were running, "+
				"and none wrote anything, reached init_process_group, or launched a collective "+
				"operation that NCCL counts (never); needs --log-dir or --tag", &l.stallTimeout),
			flags.Flag("--stall-action ACTION", "end: write the stacks of all ranks, and end the job (or "+
				"restart it); stacks: only write the stacks, once per stall (end)", &l.stallAction),
		}},
	}
}

// noneFor0 converts the value of a flag whose 0 is no time at all: in agent.Config, 0 is the
// default.
func noneFor0(d time.Duration) time.Duration {
	if d == 0 {
		return agent.None
	}
	return d
}

func (l *limits) set(c *agent.Config) {
	c.Strict, c.HealthCmd, c.HealthTimeout = l.strict, l.health, l.healthTimeout
	c.JoinTimeout, c.LastCall = noneFor0(l.joinTimeout), noneFor0(l.lastCall)
	c.PeerTimeout, c.ExitTimeout = l.peerTimeout, l.exitTimeout
	c.Grace = noneFor0(l.grace)
	c.StallTimeout, c.StallAction = l.stallTimeout, agent.StallAction(l.stallAction)
}
