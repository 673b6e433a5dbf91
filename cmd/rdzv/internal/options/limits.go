package options

import (
	"time"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/rdzv/agent"
)

// limits are the flags about checks, times and stalls.
func limits(c *agent.Config) []flags.Group {
	return []flags.Group{
		{Title: "Checks before PROGRAM starts", Rows: []flags.Row{
			flags.Flag("--strict", "do not start if nodes differ in the script, python, torch, or "+
				"variables NCCL_*, GLOO_*, TORCH_*, OMP_* (warn)", &c.Strict),
			flags.Flag("--health-cmd CMD", "run CMD with /bin/sh on each node before each attempt; a "+
				"node where it fails is replaced by a spare, or the job ends with 123", &c.HealthCmd),
			flags.Flag("--health-timeout D", "time limit of CMD (1m)", &c.HealthTimeout),
		}},
		{Title: "Timeouts, such as 10s, 5m or 1h30m", Rows: []flags.Row{
			flags.Flag("--join-timeout D", "wait this long for all agents to join, 0 is no limit (10m)",
				(*mayBeNone)(&c.JoinTimeout)),
			flags.Flag("--last-call D", "with --nodes MIN:MAX, wait this long for more nodes after MIN "+
				"have joined (30s)", (*mayBeNone)(&c.LastCall)),
			flags.Flag("--peer-timeout D", "an agent that is silent for this long is lost (10s)",
				&c.PeerTimeout),
			flags.Flag("--grace D", "time between SIGTERM and SIGKILL (10s)", (*mayBeNone)(&c.Grace)),
			flags.Flag("--exit-timeout D",
				"stop the remaining workers this long after the first one succeeded (never)",
				&c.ExitTimeout),
		}},
		{Title: "A job that makes no progress", Rows: []flags.Row{
			flags.Flag("--stall-timeout D", "the job has stalled if for D all workers were running, "+
				"and none wrote anything, reached init_process_group, or launched a collective "+
				"operation that NCCL counts (never); needs --log-dir or --tag", &c.StallTimeout),
			flags.Flag("--stall-action ACTION", "end: write the stacks of all ranks, and end the job (or "+
				"restart it); stacks: only write the stacks, once per stall (end)",
				(*string)(&c.StallAction)),
		}},
	}
}

// mayBeNone is a time whose 0 is none at all: in an agent.Config 0 is the default.
type mayBeNone time.Duration

func (d *mayBeNone) Set(text string) error {
	read, err := time.ParseDuration(text)
	if err == nil && read == 0 {
		read = agent.None
	}
	*d = mayBeNone(read)
	return err
}

func (d *mayBeNone) String() string { return d.time().String() }

// Type is that of a time, for messages about one that cannot be read.
func (d *mayBeNone) Type() string { return "duration" }

func (d *mayBeNone) time() time.Duration {
	if time.Duration(*d) == agent.None {
		return 0
	}
	return time.Duration(*d)
}
