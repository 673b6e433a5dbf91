package meet

import "context"

// choose picks the row of the table in the package comment that holds for this agent: where the
// store may be, with which key, and how it comes out who hosts. onEnd has a function called when
// the agent leaves.
func choose(ctx context.Context, c *Config, onEnd func(func())) (*plan, election, error) {
	var p *plan
	var err error
	elect := election(byRank)
	switch {
	case c.Store != "":
		p, err = namedStore(ctx, c)
		if err == nil && len(p.addrs) > 0 && c.RuntimeDir != "" {
			elect = byLock(c.RuntimeDir)
		}
	case c.Join != "":
		p, err = joinLine(c)
	case openMPI4(c):
		p, err = orte(c)
	case openMPI5(c):
		p, err = prte(c)
	case hydra(c):
		p, err = remembered(c)
		if p == nil && err == nil {
			p, elect = &plan{}, byPMI
		}
	case slurm(c):
		p, err = slurmStep(c, onEnd)
	case c.byHand():
		p, err = unranked(c)
		elect = byBeacon
	default:
		p, err = ranked(c)
	}
	return p, elect, err
}
