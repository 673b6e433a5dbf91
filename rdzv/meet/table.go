package meet

import (
	"context"

	"rdzv/rdzv/meet/internal/hosts"
)

// makePlan selects the row of the table in the package documentation that applies to this agent.
// onLeave registers a function that is called when the agent leaves.
func makePlan(ctx context.Context, c *Config, onLeave func(func())) (*plan, election, error) {
	var p *plan
	var err error
	elect := election(byRank)
	switch {
	case c.Hosts:
		p, err = hostAtOnce(c)
	case c.Join != "":
		p, err = joinLine(c)
		if c.Store != "" {
			elect = byJoin
		}
	case c.Store != "":
		p, elect, err = namedStore(ctx, c)
	case openMPI4(c):
		p, err = orte(c)
	case openMPI5(c):
		p, err = prte(c)
	case hydra(c):
		p, err = savedContact(c)
		if p == nil && err == nil {
			p, elect = &plan{}, byPMI
		}
	case slurm(c):
		p, err = slurmStep(c)
	case !c.hasRank():
		p, err = noLauncher(c)
		elect = byBeacon
	default:
		p, err = ranked(c)
	}
	return p, elect, err
}

// NodesOf returns the names of the nodes on which the launcher has started the agents of the job;
// nil if it does not tell.
func NodesOf(c Config) (nodes []string) {
	switch {
	case c.Proc != nil && openMPI4(&c):
		nodes = openMPINodes(c.Env, c.Proc, c.PID)
	case slurm(&c):
		nodes, _ = hosts.ParseHostlist(c.Env["SLURM_STEP_NODELIST"])
	}
	return nodes
}
