package meet

import (
	"context"
	"fmt"
	"time"

	"rdzv/rdzv/meet/internal/hosts"
)

// slurm reports whether srun has started this agent as a task of a step. The batch script has most
// of the variables too, but no step.
func slurm(c *Config) bool {
	return c.launcherMayBe("slurm", "slurm-pmi") && c.hasRank() &&
		c.Env["SLURM_STEP_ID"] != "" && c.Env["SLURM_STEP_NODELIST"] != ""
}

// slurmStep is the plan for srun. Rank 0 is on the first node of the step, or with some
// distributions on another one.
func slurmStep(c *Config) (*plan, error) {
	p, err := planByToken(c)
	if err != nil {
		return nil, err
	}
	p.sources = []source{fixed("this host", 0, p.addrs, p.ports)}
	if !c.oneNode() {
		list := c.Env["SLURM_STEP_NODELIST"]
		nodes, err := hosts.ParseHostlist(list)
		if err != nil {
			return nil, fmt.Errorf("cannot read SLURM_STEP_NODELIST=%q: %w", list, err)
		}
		p.sources = append(p.sources,
			named(c, nodes, 0, p.ports), nodeAddrs(c, nodes, p))
	}
	p.announce = !c.oneNode()
	p.hint = "rank 0's agent hosts the store on one of the nodes of the step: " +
		"has srun started it (see its messages above), and can the nodes connect to each other?"
	return p, nil
}

// Slurm's controller may know addresses of nodes whose names cannot be resolved. To limit its load,
// agents ask only if they have found no store for some time, and at first for the first node only.
const (
	scontrolAfter = 300 * time.Millisecond
	scontrolMore  = 3 * time.Second
)

// nodeAddrs is the source of the addresses that scontrol shows.
func nodeAddrs(c *Config, nodes []string, p *plan) source {
	ask := func(ctx context.Context, nodes string, add func(candidate)) {
		if ctx.Err() != nil {
			return
		}
		text, err := c.Scontrol(ctx, "-o", "show", "node", nodes)
		if err != nil {
			return
		}
		for i, n := range hosts.ParseScontrol(string(text)) {
			addrs, err := c.resolve(ctx, n.Addr)
			if err == nil {
				addAll(add, n.Name, i, addrs, p.ports)
			}
		}
	}
	return func(ctx context.Context, add func(candidate)) {
		if c.Scontrol == nil {
			return
		}
		pause(ctx, scontrolAfter)
		briefly, cancel := context.WithTimeout(ctx, scontrolAfter)
		_, err := c.resolve(briefly, nodes[0])
		cancel()
		if err != nil {
			ask(ctx, nodes[0], add)
		}
		pause(ctx, scontrolMore)
		ask(ctx, c.Env["SLURM_STEP_NODELIST"], add)
	}
}
