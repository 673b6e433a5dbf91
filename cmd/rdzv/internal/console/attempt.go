package console

import (
	"cmp"
	"fmt"
	"strings"

	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// attemptFailed keeps the line that says why an attempt failed until it is known what follows, or
// until that takes some time (settling.go).
func (c *Console) attemptFailed(e agent.AttemptFailed) {
	line, unsure := c.EndLine(agent.JobEnded{Verdict: e.Verdict}), ""
	switch {
	case e.Verdict.Withdrawn:
		line = e.Verdict.Error()
	case e.MayBeConsequence:
		unsure = strings.Replace(line, "failed first:", "failed:", 1) +
			"; waiting to see whether an agent was lost"
	}
	if !e.Announce {
		c.Verbose("%s", cmp.Or(unsure, line))
		return
	}
	c.attempt, c.held, c.unsure = true, line, unsure
}

// restarting writes the one line about an attempt that failed and is followed by another one.
func (c *Console) restarting(e agent.Restarting) {
	line := fmt.Sprintf("restarting all workers (restart %d of %d)", e.Attempt, e.MaxRestarts)
	if e.Delay > 0 {
		line = fmt.Sprintf("restarting all workers in %v (restart %d of %d)", e.Delay.Rounded(),
			e.Attempt, e.MaxRestarts)
	}
	if len(e.Vacant) > 0 {
		line = fmt.Sprintf("waiting%s for an agent in place of %s (restart %d of %d)", c.upToTimeout(),
			placesOf(e.Vacant), e.Attempt, e.MaxRestarts)
	}
	if e.Missing > 0 {
		line = fmt.Sprintf("waiting%s for %s (restart %d of %d)", c.upToTimeout(),
			Plural(e.Missing, "more node"), e.Attempt, e.MaxRestarts)
	}
	if e.Withdrawn {
		line = "the job goes on without this node"
	}
	if c.held != "" {
		line = c.held + "; " + line
	}
	c.attempt, c.held, c.unsure = false, "", ""
	if !e.Announce {
		c.Verbose("%s", line)
		return
	}
	c.Info("%s", line)
	if len(e.Vacant) > 0 {
		c.suggest("start it again with the same command, there or on another node")
	}
	if e.Missing > 0 {
		c.suggest("start the same command on other nodes")
	}
}

// upToTimeout is " up to 10m0s", or "" without a limit.
func (c *Console) upToTimeout() string {
	if c.joinTimeout == 0 {
		return ""
	}
	return fmt.Sprintf(" up to %v", c.joinTimeout)
}

// placesOf is "node2 (ranks 4-7), node3 (rank 8)".
func placesOf(nodes []rdzv.NodeRanks) string {
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = fmt.Sprintf("%s (%s)", node.Host, withRanks(node.Ranks))
	}
	return strings.Join(texts, ", ")
}

// withRanks is "rank 8" or "ranks 4-7".
func withRanks(ranks string) string {
	if strings.ContainsAny(ranks, "-,") {
		return "ranks " + ranks
	}
	return "rank " + ranks
}

// spare writes that this agent runs no workers.
func (c *Console) spare(e agent.WorldAgreed) {
	if e.MaxAgents > 0 {
		c.Info("waiting for the next attempt: the job already runs on %s", Plural(e.Nodes, "node"))
		return
	}
	c.replaced(e)
	if e.Attempt == 0 {
		c.Info("waiting as a spare: this node takes over the ranks of one that is lost")
	}
}

// replaced writes which agents have taken over the ranks of lost ones.
func (c *Console) replaced(e agent.WorldAgreed) {
	for _, r := range e.Replaced {
		line := fmt.Sprintf("%s takes over %s of %s", r.Host, withRanks(r.Ranks), r.Lost)
		if r.Host == r.Lost {
			line = fmt.Sprintf("%s runs %s again", r.Host, withRanks(r.Ranks))
		}
		line += fmt.Sprintf(" (restart %d of %d)", e.Attempt, e.MaxRestarts)
		if e.Announce {
			c.Info("%s", line)
		} else {
			c.Verbose("%s", line)
		}
	}
}
