package announce

import (
	"fmt"
	"strings"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/internal/plural"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

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
func spare(c *console.Console, e agent.WorldAgreed) {
	if e.MaxTasks > 0 {
		c.Info("waiting for the next attempt: the job already runs on %s",
			plural.Of(e.Nodes, "node"))
		return
	}
	replaced(c, e)
	if e.Attempt == 0 {
		c.Info("waiting as a spare: this node takes over the ranks of one that is lost")
	}
}

// replaced writes which agents have taken over the ranks of lost ones.
func replaced(c *console.Console, e agent.WorldAgreed) {
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
