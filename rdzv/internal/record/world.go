package record

import (
	"time"
)

// World is the agreed table of all workers, without the seats of the other agents.
type World struct {
	Job string `json:"job"` // name of the job
	// number of the attempt; 0 is the first
	Attempt int `json:"attempt"`
	// how many attempts there may be after the first one
	MaxRestarts int `json:"max_restarts,omitempty"`
	// number of workers of the job (WORLD_SIZE)
	Size   int `json:"world_size"`
	Agents int `json:"agents"` // number of agents that run workers
	Nodes  int `json:"nodes"`  // number of their nodes
	// the largest number of tasks, in a job with a variable number of nodes; without a launcher each
	// agent is a task
	MaxTasks int `json:"max_tasks,omitempty"`
	// the nodes with their ranks; if there are more than 8, the first two and the last one
	Layout     []NodeRanks `json:"layout"`
	MasterAddr string      `json:"master_addr"` // MASTER_ADDR
	MasterPort int         `json:"master_port"` // MASTER_PORT
	// node of the agent that hosts the store
	StoreHost string `json:"store_host,omitempty"`
	StoreRank int    `json:"store_rank"` // first rank of that agent
	// the place of this agent in the world; in the store it has a key of its own
	Seat Seat `json:"seat,omitzero"`

	Spares     []string `json:"spares,omitempty"`      // nodes with such agents, at most 8
	MoreSpares int      `json:"more_spares,omitempty"` // how many others there are
	// agents that have taken over the ranks of lost ones in this attempt
	Replaced []Replaced `json:"replaced,omitempty"`

	// when the world of the first attempt was published; it tells this run of the job from others
	Began time.Time `json:"began,omitzero"`
	// with `max_restarts`: how long an agent may be silent before the others consider it lost; left
	// out in a store that no agent hosts, where that is the TTL of its lease
	PeerTimeout Seconds `json:"peer_timeout_seconds,omitempty"`
	// how long the workers of an agent may still run that takes itself for lost
	LostGrace Seconds `json:"lost_grace_seconds,omitempty"`
	// an agent that is lost, or has received SIGTERM, can be started again: the others wait for it
	Replaceable bool `json:"replaceable,omitempty"`
	// how long the agents wait at most until the agent of rank 0 says that their workers may start
	HeadStart Seconds `json:"head_start_seconds,omitempty"`

	Exports *Exports `json:"-"` // of rank 0's agent, nil if there are none; they have a key
}

// MayRestart tells whether another attempt may follow this one.
func (w *World) MayRestart() bool { return w.Attempt < w.MaxRestarts }

// NodeRanks is a node and the ranks on it.
type NodeRanks struct {
	Host  string `json:"host"`  // name of one
	Ranks string `json:"ranks"` // its ranks, such as `0-7`, `0,2`, or `0,2,...,14`
}

// SeatValue is the value of seat/ID.
type SeatValue struct {
	Seat
	Full bool `json:"full,omitempty"` // the job has no seat for this agent
	// Agent identifies the agent to a later leader, in a store that no agent hosts: the agent's own
	// keys are deleted when it is lost. Nil in other stores.
	Agent *Member `json:"agent,omitempty"`
}

// Replaced is an agent that has taken over the seat of another one, which is lost.
type Replaced struct {
	Ranks string `json:"ranks"`     // the ranks, as in `layout`
	Host  string `json:"host"`      // the node on which they run now
	Lost  string `json:"lost_host"` // the node on which they ran before; it may be the same
}
