// Package layout knows which agents a job is to have before they meet: how many, where, and which
// of them can be replaced.
package layout

import (
	"cmp"
	"fmt"
	"net/netip"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/plural"
	"rdzv/rdzv/meet"
)

// Given has the user's settings about the number of agents, their order, and the store.
type Given struct {
	Nodes, MinNodes, Spares int    // as in agent.Config
	NodeRank                *int   // nil if it is not given
	Store                   string // HOST or HOST:PORT
	Known                   bool   // where the store is, or how it is joined
	Started                 bool   // one program has started all agents, and starts none again
}

// Layout describes the agents of a job, as far as one of them knows before they meet.
type Layout struct {
	Given
	Placement envmap.Placement
	Platform  string // that has started this agent, one on each node; "" if none has
	Agents    int    // of the job, or tasks of the launcher; 0 before Count
	Tasks     int    // of the launcher on this node that share this agent
}

// Count determines how many agents the job has, and the node rank of this one.
func (l *Layout) Count() error {
	p := l.Placement
	if err := p.CheckComplete(); err != nil {
		return err
	}
	switch {
	case p.Launcher == envmap.None:
		l.Agents = max(l.Nodes, 1) + l.Spares
		return cmp.Or(l.checkSpares(), l.checkNodeRange(), l.takeNodeRank())
	case p.Size == envmap.Unknown || p.Rank == envmap.Unknown:
		return hint.With(
			fmt.Errorf("cannot use launcher %s: it does not provide the rank and the number of tasks",
				p.Launcher),
			"start rdzv on every node with --launcher none --nodes N",
		)
	default:
		l.Agents = p.Size
	}
	return cmp.Or(l.checkSpares(), l.checkNodeRange())
}

// takeNodeRank takes the given node rank if no launcher has placed this agent.
func (l *Layout) takeNodeRank() error {
	n := l.NodeRank
	if n == nil {
		return nil
	}
	if *n >= l.Agents {
		return hint.With(
			fmt.Errorf("cannot use --node-rank %d: the job has %s", *n, plural.Of(l.Agents, "node")),
			"give --nodes the number of agents; node ranks begin with 0",
		)
	}
	l.Placement.NodeRank = *n
	return nil
}

// FirstOfNode tells whether no other agent of this node comes before this one, as far as the
// launcher says: one that has not joined announces only then what all of them know.
func (l *Layout) FirstOfNode() bool {
	return l.Placement.Launcher == envmap.None || l.Placement.LocalRank <= 0
}

// OnOneHost tells whether all agents of the job are known to be on this host.
func (l *Layout) OnOneHost() bool {
	p := l.Placement
	store, _, _ := meet.ParseStore(l.Store)
	addr, _ := netip.ParseAddr(store)
	return p.Nodes == 1 || p.Size > 0 && p.LocalSize == p.Size ||
		store == "localhost" || addr.IsLoopback()
}

// MayRunRank0 tells whether rank 0 may be one of this agent's workers.
func (l *Layout) MayRunRank0() bool {
	p := l.Placement
	return l.Spares > 0 || l.Elastic() ||
		p.Rank == 0 || p.Rank == envmap.Unknown && p.NodeRank <= 0
}
