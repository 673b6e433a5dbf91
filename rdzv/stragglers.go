package rdzv

import (
	"fmt"
	"time"
)

// Stragglers are the workers that still run long after another one succeeded.
type Stragglers struct {
	First   int           `json:"first"`   // rank that succeeded first
	After   time.Duration `json:"after"`   // how long ago
	Running []Straggler   `json:"running"` // at most 8, in the order in which their agents joined
	More    int           `json:"more,omitempty"`
}

// Straggler is a rank that still runs, and its node.
type Straggler struct {
	Rank int    `json:"rank"`
	Host string `json:"host"`
}

func (s Straggler) String() string { return fmt.Sprintf("%d (%s)", s.Rank, s.Host) }

// String returns a line for people: "ranks 1 (node1), 3 (node2) are still running 10s
// after rank 0 succeeded".
func (s Stragglers) String() string {
	n, verb := len(s.Running)+s.More, "are"
	if n == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s %s %s still running %v after rank %d succeeded",
		plural("rank", n), list(s.Running, s.More), verb, s.After, s.First)
}
