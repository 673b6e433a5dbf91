package rdzv

// World is what all agents have agreed on, and where this one sits in it.
type World struct {
	Job     string `json:"job"`
	Attempt int    `json:"attempt"`
	Size    int    `json:"size"`   // number of workers
	Agents  int    `json:"agents"` // number of agents
	Nodes   int    `json:"nodes"`  // number of nodes

	// MasterAddr and MasterPort are where torch's store of rank 0 listens.
	MasterAddr string `json:"master_addr"`
	MasterPort int    `json:"master_port"`

	// StoreHost is the node whose agent hosts the store, and StoreRank that agent's
	// first rank: what to name when the store is lost. Empty and Any if no agent
	// said that it does.
	StoreHost string `json:"store_host,omitempty"`
	StoreRank int    `json:"store_rank"`

	Seat Seat `json:"-"` // this agent's own; has a key of its own
}

// Seat is where one agent sits. Its workers have the ranks Rank, Rank+1, ... and
// the local ranks LocalRank, LocalRank+1, ...
type Seat struct {
	Rank      int `json:"rank"`       // of its first worker
	LocalRank int `json:"local_rank"` // of its first worker
	LocalSize int `json:"local_size"` // workers on its node
	Node      int `json:"node"`       // number of its node
	Slots     int `json:"slots"`      // workers of this agent
}
