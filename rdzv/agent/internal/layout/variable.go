package layout

import (
	"cmp"
	"fmt"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/plural"
)

// Elastic tells whether the number of nodes may vary.
func (l *Layout) Elastic() bool { return l.MinNodes > 0 }

// MinTasks is the smallest number of tasks of the job, each node having as many as this one; 0 if
// it does not vary.
func (l *Layout) MinTasks() int { return l.MinNodes * max(l.Tasks, 1) }

// checkNodeRange rejects a variable number of nodes that the launcher does not permit, and one with
// which half of the nodes could form a job without the others.
func (l *Layout) checkNodeRange() error {
	p, least, most := l.Placement, l.MinNodes, l.Nodes
	nodes := fmt.Sprintf("--nodes %d:%d", least, most)
	const alone = "start rdzv on every node with --launcher none"
	switch {
	case !l.Elastic():
		return nil
	case p.Platform != "":
		return l.fixedNodes("use "+nodes, nodes)
	case p.Launcher != envmap.None && !l.KeepsSpares():
		return hint.With(
			fmt.Errorf("cannot use %s: %s ends the job when it loses a node", nodes, p.Launcher),
			"use srun, or "+alone,
		)
	case p.Launcher != envmap.None && p.LocalSize != max(l.Tasks, 1):
		return l.severalAgents("use " + nodes)
	case p.Launcher != envmap.None && most != l.nodes():
		return hint.With(
			fmt.Errorf("cannot use %s: srun has started tasks on %s", nodes, plural.Of(l.nodes(), "node")),
			fmt.Sprintf("give --nodes MIN:%d", l.nodes()),
		)
	case p.Launcher != envmap.None && l.Agents != most*p.LocalSize:
		return hint.With(
			fmt.Errorf("cannot use %s: srun has started %s on this node, and %d in all", nodes,
				plural.Of(p.LocalSize, "task"), l.Agents),
			"start the same number on each node, with srun --ntasks-per-node",
		)
	case p.Launcher == envmap.None && 2*least <= most && !l.MayReplace(false):
		return hint.With(
			fmt.Errorf("cannot use %s: nodes that do not find the others could form a second job", nodes),
			"give --store HOST, or a MIN of more than half of MAX",
		)
	}
	return nil
}

// fixedNodes is the error about fields for more nodes, or fewer, than a platform has numbered: the
// number of a node is its rank, and only the same node, started again, may have it.
func (l *Layout) fixedNodes(do, fields string) error {
	p := l.Placement
	return hint.With(
		fmt.Errorf("cannot %s: the %s gives each node its rank (%s)", do, p.Platform, p.Launcher),
		"to do without these ranks: rdzv exec --launcher none "+fields+" --store "+
			cmp.Or(p.Master, "HOST"),
	)
}

// LateHint returns a suggestion for an agent that did not find enough others, or "" if none is
// known. In a job with a variable number of nodes the others may have started without it.
func (l *Layout) LateHint() string {
	if !l.Elastic() || l.Placement.Launcher != envmap.None || l.MayReplace(false) {
		return ""
	}
	return "if the job runs already, its nodes are found only with --store HOST, given on all " +
		"nodes"
}
