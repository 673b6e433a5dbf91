package meet

import (
	"context"
	"fmt"
	"time"

	"rdzv/rdzv/meet/internal/hosts"
	"rdzv/rdzv/secret"
)

// slurm tells a task of srun. The body of a batch script has most of the variables too, but no
// step.
func slurm(c *Config) bool {
	return c.from("slurm", "slurm-pmi") && c.Env["SLURM_STEP_ID"] != "" && c.Env["SLURM_STEP_NODELIST"] != "" && !c.byHand()
}

// slurmStep plans for srun: rank 0 is on the first node of the step, or with some distributions on
// another.
func slurmStep(c *Config, onEnd func(func())) (*plan, error) {
	p, err := planByToken(c)
	if err != nil {
		return nil, err
	}
	p.sources = []source{nearby(c, p.ports)}
	if !c.oneNode() {
		nodes, err := hosts.ParseHostlist(c.Env["SLURM_STEP_NODELIST"])
		if err != nil {
			return nil, fmt.Errorf("cannot read SLURM_STEP_NODELIST=%q: %w", c.Env["SLURM_STEP_NODELIST"], err)
		}
		p.sources = append(p.sources, names(c.Resolve, nodes, 0, p.ports), nodeAddrs(c, nodes, p, onEnd))
	}
	p.announce = !c.oneNode()
	p.hint = "rank 0's agent hosts the store on one of the nodes of the step: " +
		"can the nodes connect to each other on these ports?"
	return p, nil
}

// Slurm may know addresses that names do not give. Its controller is asked as little as can be:
// only by those who have found nothing for a while, once for a node, at first for the first host
// alone.
const (
	scontrolAfter = 300 * time.Millisecond
	scontrolMore  = 3 * time.Second
)

func nodeAddrs(c *Config, nodes []string, p *plan, onEnd func(func())) source {
	s := shared{dir: c.RuntimeDir, onEnd: onEnd}
	ask := func(ctx context.Context, nodes string, give func(offer)) {
		if ctx.Err() != nil {
			return
		}
		text, err := s.oncePerNode(ctx, fmt.Sprintf("%x-%x", p.public, secret.PublicName(nodes)), func() ([]byte, error) {
			return c.Scontrol(ctx, "-o", "show", "node", nodes)
		})
		if err != nil {
			return
		}
		for i, n := range hosts.ParseScontrol(string(text)) {
			addrs, err := lookup(ctx, c.Resolve, n.Addr)
			if err == nil {
				offerAll(give, n.Name, i, addrs, p.ports)
			}
		}
	}
	return func(ctx context.Context, give func(offer)) {
		if c.Scontrol == nil {
			return
		}
		pause(ctx, scontrolAfter)
		soon, cancel := context.WithTimeout(ctx, scontrolAfter)
		_, err := lookup(soon, c.Resolve, nodes[0])
		cancel()
		if err != nil {
			ask(ctx, nodes[0], give)
		}
		pause(ctx, scontrolMore)
		ask(ctx, c.Env["SLURM_STEP_NODELIST"], give)
	}
}
