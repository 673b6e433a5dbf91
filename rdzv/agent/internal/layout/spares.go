package layout

import (
	"errors"
	"fmt"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/plural"
)

// checkSpares rejects spares that the launcher would not let take over the ranks of a lost agent.
func (l *Layout) checkSpares() error {
	p, n := l.Placement, l.Spares
	switch {
	case n == 0:
		return nil
	case p.Launcher == envmap.None && l.Nodes == 0:
		return hint.With(
			errors.New("cannot keep spares: the number of nodes is not given"),
			fmt.Sprintf("give --nodes N, and start the command on %d more", n),
		)
	case p.Platform != "":
		fields := fmt.Sprintf("--nodes %d --spares %d", max(l.Agents-n, 1), n)
		return l.fixedNodes("keep spares", fields)
	case p.Launcher != envmap.None && !l.KeepsSpares():
		return hint.With(
			fmt.Errorf("cannot keep spares: %s ends the job when it loses a node", p.Launcher),
			"use srun, or start rdzv on every node with --launcher none --nodes N",
		)
	case p.Launcher != envmap.None && p.LocalSize != max(l.Tasks, 1):
		return l.severalAgents("keep spares")
	case n >= l.nodes():
		return fmt.Errorf("cannot keep %s: the job has %s", plural.Of(n, "spare"),
			plural.Of(l.nodes(), "node"))
	}
	return nil
}

// severalAgents is the error about nodes that may be lost, and tasks that do not share an agent.
func (l *Layout) severalAgents(do string) error {
	return hint.With(
		fmt.Errorf("cannot %s: srun has started %d tasks on this node, and they do not share an agent",
			do, l.Placement.LocalSize),
		"start one for each node: srun --ntasks-per-node 1 --no-kill --kill-on-bad-exit=0 "+
			"rdzv exec --nproc-per-node N",
	)
}

// nodes is the number of nodes, as far as it is known.
func (l *Layout) nodes() int {
	if n := l.Placement.Nodes; l.Placement.Launcher != envmap.None && n > 0 {
		return n
	}
	return l.Agents
}

// KeepsSpares tells whether the launcher can go on when it has lost a node.
func (l *Layout) KeepsSpares() bool {
	return l.Placement.Launcher == envmap.Slurm || l.Placement.Launcher == envmap.SlurmPMI
}
