package main

import (
	"fmt"

	"rdzv/envmap"
)

// What -v tells of a job's beginning, a line each: where this agent is, where the
// store is, and which workers it runs.

func (g *agent) tellPlace() {
	p := g.place
	if p.Launcher == envmap.None {
		g.say.detail("started by hand: job %s, %s", g.name, plural(g.agents, "agent"))
		return
	}
	g.say.detail("started by %s: job %s, rank %d of %d", p.Launcher, g.name, p.Rank, p.Size)
}

func (g *agent) tellStore() {
	where := "in this process, for this agent alone"
	switch {
	case g.conn.hosting() && g.conn.meeting != nil:
		where = "in this process"
	case g.conn.meeting != nil:
		where = fmt.Sprintf("at %v, and this agent at %s", g.conn.meeting.Addr, g.conn.local())
	}
	g.say.detail("the store is %s", where)
}

func (g *agent) tellSeat() {
	w := g.world
	last := w.Seat.Rank + g.slots - 1
	ranks := fmt.Sprintf("rank %d", last)
	if g.slots > 1 {
		ranks = fmt.Sprintf("ranks %d to %d", w.Seat.Rank, last)
	}
	g.say.detail("all are here: this agent runs %s of %d, on node %d of %d; rank 0 is at %s port %d",
		ranks, w.Size, w.Seat.Node, w.Nodes, w.MasterAddr, w.MasterPort)
}
