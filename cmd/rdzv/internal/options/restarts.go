package options

import (
	"strconv"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/restart"
)

// restarts are the flags about what follows a failure.
type restarts struct {
	maxRestarts int
	spares      int
	noRestartOn flags.CommaList
	finalCodes  []int // of noRestartOn
}

func (r *restarts) rows() []flags.Row {
	return []flags.Row{
		flags.Flag("--max-restarts N", "if a worker fails or a node is lost, stop all workers of the "+
			"job and start them again, at most N times (0)", &r.maxRestarts),
		flags.Flag("--spares N", "N more nodes wait, and take over the ranks of lost nodes (0): the "+
			"last nodes of srun; without a launcher, nodes besides those of --nodes; implies "+
			"--max-restarts N unless that is given", &r.spares),
		flags.Flag("--no-restart-on CODES", "do not restart after these exit codes, comma-separated; "+
			"rdzv never does after 2, 93, 121 and 124 to 127", &r.noRestartOn),
	}
}

// read takes the exit codes after which the workers are not restarted.
func (r *restarts) read(c command) error {
	for _, text := range r.noRestartOn {
		code, err := strconv.Atoi(text)
		if err != nil || code < 1 || code > 255 {
			return c.reject(true, "no-restart-on", text, "must be exit codes, 1 to 255, such as 3,139")
		}
		r.finalCodes = append(r.finalCodes, code)
	}
	return nil
}

func (r *restarts) set(c *agent.Config, p *placement, given *pflag.FlagSet) {
	c.Restarts = restart.Policy{Max: r.most(p, given), Never: r.finalCodes}
	c.Spares = r.spares
}

// most is how many there may be: without --max-restarts one for each agent that may be lost.
func (r *restarts) most(p *placement, given *pflag.FlagSet) int {
	switch {
	case given.Changed("max-restarts"):
		return r.maxRestarts
	case p.minNodes > 0:
		return p.nodes - p.minNodes
	}
	return r.spares
}
