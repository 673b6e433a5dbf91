package record

import (
	"time"

	"rdzv/rdzv/restart"
)

// Restart is an attempt that follows another one, after a failure.
type Restart struct {
	Attempt int `json:"attempt"` // which attempt begins
	// how long the agents wait before they start the workers
	Delay Seconds `json:"delay_seconds"`
	// nodes whose agents are lost: the others wait for agents in their place
	Vacant []NodeRanks `json:"vacant,omitempty"`
	// how many more agents the attempt needs than are left, in a job with a variable number of
	// nodes
	Missing int `json:"missing_agents,omitempty"`
}

// Latest is the value of latest: the latest attempt, and what its leader has to know of those
// before.
type Latest struct {
	Attempt  int               `json:"attempt"`
	Delay    time.Duration     `json:"delay,omitempty"` // before its workers start
	Began    time.Time         `json:"began"`           // when the first world was published
	Failures []restart.Failure `json:"failures"`
}
