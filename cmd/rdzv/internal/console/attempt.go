package console

import (
	"fmt"
	"time"

	"rdzv/rdzv/agent"
)

// attemptFailed keeps the line that says why an attempt failed until it is known what follows, or
// until that takes some time (settling.go).
func (c *Console) attemptFailed(e agent.AttemptFailed) {
	line := c.EndLine(agent.JobEnded{Verdict: e.Verdict})
	if !e.Announce {
		c.Verbose("%s", line)
		return
	}
	c.attempt, c.held = true, line
}

// restarting writes the one line about an attempt that failed and is followed by another one.
func (c *Console) restarting(e agent.Restarting) {
	line := fmt.Sprintf("restarting all workers (restart %d of %d)", e.Attempt, e.MaxRestarts)
	if e.Delay > 0 {
		line = fmt.Sprintf("restarting all workers in %v (restart %d of %d)", e.Delay.Round(time.Second),
			e.Attempt, e.MaxRestarts)
	}
	if c.held != "" {
		line = c.held + "; " + line
	}
	c.attempt, c.held = false, ""
	if e.Announce {
		c.Info("%s", line)
	} else {
		c.Verbose("%s", line)
	}
}
