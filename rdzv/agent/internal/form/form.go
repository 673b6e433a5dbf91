// Package form has the JSON forms of values of package rdzv in events: they have other names and
// units than in the protocol between agents.
package form

import "rdzv/rdzv"

// World is an agreed world.
type World struct {
	Job string `json:"job"` // name of the job
	// number of the attempt; 0 is the first
	Attempt int `json:"attempt"`
	// how many attempts there may be after the first one
	Restarts int `json:"max_restarts,omitempty"`
	// number of workers of the job (WORLD_SIZE)
	WorldSize int `json:"world_size"`
	Agents    int `json:"agents"` // number of agents that run workers
	Nodes     int `json:"nodes"`  // number of their nodes
	// the largest number of agents, in a job with a variable number of nodes
	MaxAgents int `json:"max_agents,omitempty"`
	// the nodes with their ranks; if there are more than 8, the first two and the last one
	Layout     []Layout `json:"layout"`
	MasterAddr string   `json:"master_addr"` // MASTER_ADDR
	MasterPort int      `json:"master_port"` // MASTER_PORT
	// node of the agent that hosts the store
	StoreHost string `json:"store_host,omitempty"`
	StoreRank int    `json:"store_rank"` // first rank of that agent
	Seat      Seat   `json:"seat"`       // the place of this agent in the world

	Spares     []string `json:"spares,omitempty"`      // nodes with such agents, at most 8
	MoreSpares int      `json:"more_spares,omitempty"` // how many others there are
	// agents that have taken over the ranks of lost ones in this attempt
	Replaced []Replaced `json:"replaced,omitempty"`
}

// Replaced is an agent that has been replaced.
type Replaced struct {
	Ranks string `json:"ranks"`     // the ranks, as in `layout`
	Host  string `json:"host"`      // the node on which they run now
	Lost  string `json:"lost_host"` // the node on which they ran before; it may be the same
}

// InitProgress is which ranks have reached init_process_group.
type InitProgress struct {
	Ranks int `json:"world_size"` // number of workers of the job
	// number of workers that have reached it, or have ended
	Reached int `json:"reached"`
	// nodes of the workers that have not, the first 8
	Missing []Layout `json:"missing,omitempty"`
	// how many other such nodes there are
	MoreNodes int    `json:"more_nodes,omitempty"`
	First     *int   `json:"first_rank,omitempty"` // the lowest of these ranks
	FirstHost string `json:"first_host,omitempty"` // its node
	// process ID of the Python process of that rank
	FirstPython int `json:"first_python_pid,omitempty"`
	// since rank 0 reached it, or with `rank0_absent` since the others try to connect; up to 2 s
	// less than the real time
	WaitedSeconds float64 `json:"waited_seconds"`
	// `true` if rank 0 is missing; `reached` is then the number of those that try to connect to it
	Rank0Absent bool `json:"rank0_absent,omitempty"`
}

// InitProgressOf makes the form.
func InitProgressOf(p rdzv.InitProgress) InitProgress {
	form := InitProgress{
		Ranks: p.Ranks, Reached: p.Reached, Missing: LayoutOf(p.Missing), MoreNodes: p.More,
		FirstHost: p.Host, FirstPython: p.First.Python, WaitedSeconds: p.Waited.Seconds(),
		Rank0Absent: p.Absent,
	}
	if p.Reached < p.Ranks {
		form.First = &p.First.Rank
	}
	return form
}

// Layout is the ranks of a node.
type Layout struct {
	Host  string `json:"host"`  // name of one
	Ranks string `json:"ranks"` // its ranks, such as `0-7`, `0,2`, or `0,2,...,14`
}

// Seat is the place of an agent in it.
type Seat struct {
	Rank      int `json:"rank"`             // rank of its first worker; the others follow
	LocalRank int `json:"local_rank"`       // local rank of its first worker
	LocalSize int `json:"local_world_size"` // number of workers on this node
	Node      int `json:"node_rank"`        // rank of this node
	Slots     int `json:"workers"`          // number of workers of this agent

	// this agent runs no workers, and waits for the loss of another one, or has joined too late
	// for this attempt and waits for the next one
	Spare bool `json:"spare,omitempty"`
}

// WorldOf makes the form.
func WorldOf(w rdzv.World) World {
	form := World{
		Job: w.Job, Attempt: w.Attempt, Restarts: w.MaxRestarts,
		WorldSize: w.Size, Agents: w.Agents, Nodes: w.Nodes, MaxAgents: w.MaxAgents,
		MasterAddr: w.MasterAddr, MasterPort: w.MasterPort, StoreHost: w.StoreHost,
		StoreRank: w.StoreRank,
		Layout:    LayoutOf(w.Layout), Seat: Seat(w.Seat),
		Spares: w.Spares, MoreSpares: w.MoreSpares,
	}
	for _, r := range w.Replaced {
		form.Replaced = append(form.Replaced, Replaced(r))
	}
	return form
}

// LayoutOf makes the form.
func LayoutOf(nodes []rdzv.NodeRanks) (form []Layout) {
	for _, node := range nodes {
		form = append(form, Layout(node))
	}
	return form
}
