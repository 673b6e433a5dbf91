package options

import (
	"fmt"
	"strconv"
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/rdzv/agent"
)

// restarts are the flags about what follows a failure.
func restarts(c *agent.Config) flags.Group {
	return flags.Group{Title: "Restarts", Rows: []flags.Row{
		flags.Flag("--max-restarts N", "if a worker fails or a node is lost, stop all workers of the "+
			"job and start them again, at most N times (0)", &c.Restarts.Max),
		flags.Flag("--spares N", "N more nodes wait, and take over the ranks of lost nodes (0): the "+
			"last nodes of srun; without a launcher, nodes besides those of --nodes; implies "+
			"--max-restarts N unless that is given", &c.Spares),
		flags.Flag("--no-restart-on CODES", "do not restart after these exit codes, comma-separated; "+
			"rdzv never does after 2, 93, 121 and 124 to 127", (*exitCodes)(&c.Restarts.Never)),
	}}
}

// impliedRestarts is how many there may be without --max-restarts: one for each agent that may be
// lost.
func impliedRestarts(c *agent.Config) int {
	if c.MinNodes > 0 {
		return c.Nodes - c.MinNodes
	}
	return c.Spares
}

// exitCodes is the value of --no-restart-on.
type exitCodes []int

func (e *exitCodes) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		code, err := strconv.Atoi(word)
		if err != nil {
			return &flags.Refused{
				Value: word, Reason: "must be exit codes, 1 to 255, such as 3,139",
			}
		}
		*e = append(*e, code)
	}
	return nil
}

func (e *exitCodes) String() string { return strings.Trim(fmt.Sprint(*e), "[]") }

// Type is that of a flag that can be repeated.
func (e *exitCodes) Type() string { return "stringArray" }
