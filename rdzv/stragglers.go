package rdzv

import (
	"fmt"
	"time"
)

// Stragglers are the ranks that still run while another ended well long ago.
type Stragglers struct {
	First   int           `json:"first"`   // rank that ended first
	After   time.Duration `json:"after"`   // how long ago
	Running []Straggler   `json:"running"` // the first 8 that still run, in the order of their agents' arrival
	More    int           `json:"more,omitempty"`
}

// Straggler is a rank that still runs, and where.
type Straggler struct {
	Rank int    `json:"rank"`
	Host string `json:"host"`
}

func (s Straggler) String() string { return fmt.Sprintf("%d (%s)", s.Rank, s.Host) }

// String is for people: "ranks 1 (node1), 3 (node2) still run 10s after rank 0
// ended well".
func (s Stragglers) String() string {
	n, verb := len(s.Running)+s.More, "still run"
	if n == 1 {
		verb = "still runs"
	}
	return fmt.Sprintf("%s %s %s %v after rank %d ended well", plural("rank", n), list(s.Running, s.More), verb, s.After, s.First)
}
