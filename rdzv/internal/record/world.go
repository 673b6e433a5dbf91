package record

import (
	"time"
)

// World is the agreed table of all workers, without the seats of the other agents.
type World struct {
	Job     string `json:"job"`
	Attempt int    `json:"attempt"` // which attempt at running the workers; 0 is the first
	Size    int    `json:"size"`    // number of workers
	Agents  int    `json:"agents"`  // number of agents that run workers
	Nodes   int    `json:"nodes"`   // number of nodes

	// MaxRestarts is how many attempts there may be after the first one.
	MaxRestarts int `json:"max_restarts,omitempty"`

	// In a job with restarts: PeerTimeout is how long an agent may be silent before the others
	// consider it lost, 0 in a store that no agent hosts, where that is the TTL of its lease.
	// LostGrace is how long its workers may still run then, see LeaderConfig.LostGrace.
	PeerTimeout time.Duration `json:"peer_timeout,omitempty"`
	LostGrace   time.Duration `json:"lost_grace,omitempty"`

	// MaxAgents is the largest number of agents of a job with a variable number of them; 0 for
	// other jobs. An agent that joins later has the seat of a spare until the next attempt.
	MaxAgents int `json:"max_agents,omitempty"`
	// Replaceable says that an agent that is lost, or has received SIGTERM, can be started again:
	// the others wait for it in the next attempt.
	Replaceable bool `json:"replaceable,omitempty"`

	// Spares are at most 8 nodes whose agents wait for the loss of another one.
	Spares     []string `json:"spares,omitempty"`
	MoreSpares int      `json:"more_spares,omitempty"`
	// Replaced are agents that have taken over the seats of lost ones in this attempt.
	Replaced []Replaced `json:"replaced,omitempty"`

	// Began is when the leader published the world of the first attempt. It tells this run of the
	// job from others.
	Began time.Time `json:"began"`

	// MasterAddr and MasterPort are the address of the torch store that rank 0 serves.
	MasterAddr string `json:"master_addr"`
	MasterPort int    `json:"master_port"`

	// HeadStart is not 0 if the agent of rank 0 tells the others when their workers may start, see
	// Init.Release: the limit that it has for that.
	HeadStart time.Duration `json:"head_start,omitempty"`

	// Layout lists the ranks on each node, in the order of the nodes; if there are more than 8, on
	// the first two and on the last one.
	Layout []NodeRanks `json:"layout"`

	// StoreHost is the node of the agent that hosts the store, and StoreRank its first
	// rank. They name the agent if the store is lost. "" and Unknown if no agent hosts it.
	StoreHost string `json:"store_host,omitempty"`
	StoreRank int    `json:"store_rank"`

	Seat    Seat       `json:"-"` // this agent's; it has a key of its own
	Exports *Exports   `json:"-"` // of rank 0's agent, nil if there are none; they have a key too
	Peers   []Endpoint `json:"-"` // of other nodes, to which this agent is to measure the connections
}

// MayRestart tells whether another attempt may follow this one.
func (w *World) MayRestart() bool { return w.Attempt < w.MaxRestarts }

// NodeRanks is a node and the ranks on it.
type NodeRanks struct {
	Host  string `json:"host"`
	Ranks string `json:"ranks"` // "0-3", or "0,2,...,14" if there are more than three such ranges
}

// Seat is an agent's place in the world. Its workers have the ranks Rank, Rank+1, ...
// and the local ranks LocalRank, LocalRank+1, ...
type Seat struct {
	Rank      int `json:"rank"`       // of its first worker
	LocalRank int `json:"local_rank"` // of its first worker
	LocalSize int `json:"local_size"` // workers on its node
	Node      int `json:"node"`       // rank of its node
	Slots     int `json:"slots"`      // workers of this agent
	// Spare says that the agent runs no workers in this attempt: it waits for the loss of another
	// one, whose seat it takes over in the next attempt, or has joined too late for this attempt.
	// Slots is 0 then, and the ranks are Unknown. Such an agent does not settle.
	Spare bool `json:"spare,omitempty"`
}

// SeatValue is the value of seat/ID.
type SeatValue struct {
	Seat
	Peers []Endpoint `json:"peers,omitempty"` // see World.Peers
	Full  bool       `json:"full,omitempty"`  // the job has no seat for this agent
	// Agent identifies the agent to a later leader, in a store that no agent hosts: the agent's own
	// keys are deleted when it is lost. Nil in other stores.
	Agent *Member `json:"agent,omitempty"`
}

// Endpoint is where an agent answers those of other nodes.
type Endpoint struct {
	ID   string `json:"id"`
	Addr string `json:"addr"` // with a port
}

// Replaced is an agent that has taken over the seat of another one, which is lost.
type Replaced struct {
	Ranks string `json:"ranks"` // as in NodeRanks
	Host  string `json:"host"`  // where they run now
	Lost  string `json:"lost"`  // the host of the agent that is lost; it may be the same
}

// SpareSeat is the seat of an agent that waits for the loss of another one.
var SpareSeat = Seat{Rank: Unknown, LocalRank: Unknown, Node: Unknown, Spare: true}
