package agent

import (
	"cmp"
	"fmt"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/plural"
)

// elastic tells whether the number of nodes may vary.
func (l *Local) elastic() bool { return l.Config.MinNodes > 0 }

// checkNodeRange rejects a variable number of nodes that the launcher does not permit, and one with
// which half of the nodes could form a job without the others.
func (l *Local) checkNodeRange() error {
	p, least, most := l.Placement, l.Config.MinNodes, l.Config.Nodes
	nodes := fmt.Sprintf("Config.MinNodes %d and Config.Nodes %d", least, most)
	const alone = "start rdzv on every node with Config.Launcher none"
	switch {
	case !l.elastic():
		return nil
	case p.Platform != "":
		return l.fixedNodes("use "+nodes, nodes)
	case p.Launcher != envmap.None && !l.keepsSpares():
		return hint.With(
			fmt.Errorf("cannot use %s: %s ends the job when it loses a node", nodes, p.Launcher),
			"use srun, or "+alone,
		)
	case p.Launcher != envmap.None && p.LocalSize != 1:
		return hint.With(
			fmt.Errorf("cannot use %s: srun has started %d tasks on this node", nodes, p.LocalSize),
			"start one for each node: srun --ntasks-per-node 1 --no-kill --kill-on-bad-exit=0 "+
				"PROGRAM with Config.ProcsPerNode N",
		)
	case p.Launcher != envmap.None && most != l.Agents:
		return hint.With(
			fmt.Errorf("cannot use %s: srun has started %s", nodes, plural.Of(l.Agents, "task")),
			fmt.Sprintf("give Config.MinNodes MIN and Config.Nodes %d", l.Agents),
		)
	case p.Launcher == envmap.None && 2*least <= most && !l.mayReplace():
		return hint.With(
			fmt.Errorf("cannot use %s: nodes that do not find the others could form a second job", nodes),
			"give Config.Store HOST, or a Config.MinNodes of more than half of Config.Nodes",
		)
	}
	return nil
}

// fixedNodes is the error about fields for more nodes, or fewer, than a platform has numbered: the
// number of a node is its rank, and only the same node, started again, may have it.
func (l *Local) fixedNodes(do, fields string) error {
	p := l.Placement
	return hint.With(
		fmt.Errorf("cannot %s: the %s gives each node its rank (%s)", do, p.Platform, p.Launcher),
		"to do without these ranks: PROGRAM with Config.Launcher none "+fields+" Config.Store "+
			cmp.Or(p.Master, "HOST"),
	)
}

// lateHint is what to try about an agent that did not find enough others.
func (l *Local) lateHint() string {
	if !l.elastic() || l.Placement.Launcher != envmap.None || l.mayReplace() {
		return ""
	}
	return "if the job runs already, its nodes are found only with Config.Store HOST, given on all " +
		"nodes"
}

// masterHint is what to do if the name of rank 0's node does not resolve; "" if nothing is known to
// help. Pods have names only with a headless service.
func (l *Local) masterHint() string {
	switch l.Placement.Launcher {
	case envmap.Kubernetes, envmap.JobSet, envmap.Volcano, envmap.LWS, envmap.Kubeflow:
		return "pods find each other by name if they have a subdomain, and there is a headless " +
			"Service of that name, with publishNotReadyAddresses"
	}
	return ""
}
