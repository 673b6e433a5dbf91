package record

import (
	"fmt"
	"time"
)

// InitProgress says which workers have not reached torch's init_process_group some time after rank
// 0 did. A worker has reached it when it has connected to MASTER_PORT, or has ended.
type InitProgress struct {
	Ranks   int           // number of workers
	Reached int           // how many of them have reached it
	Waited  time.Duration // since rank 0 reached it
	// Absent says that rank 0 has not reached it, and is the one in Missing: Reached of the others
	// have been trying to connect to it, all for Waited.
	Absent bool
	// Missing are the ranks that have not, by node, at most 8 nodes.
	Missing []NodeRanks
	More    int // number of other nodes
	// First is the lowest of them, and Host its node.
	First Unreached
	Host  string
}

// String returns a line for people: "rank 5 (node2) has not reached init_process_group; 7 of 8
// ranks have been waiting for 12s".
func (p InitProgress) String() string {
	waited := p.Waited.Round(time.Second)
	if p.Absent {
		return fmt.Sprintf("rank 0 (%s) does not listen on MASTER_PORT yet; %d of %d ranks %s been "+
			"trying to connect for %v", p.Host, p.Reached, p.Ranks, have(p.Reached), waited)
	}
	missing := p.Ranks - p.Reached
	if missing == 0 {
		return fmt.Sprintf("all %d ranks have reached init_process_group by now, %v after rank 0 did",
			p.Ranks, waited)
	}
	names := make([]string, len(p.Missing))
	for i, node := range p.Missing {
		names[i] = fmt.Sprintf("%s (%s)", node.Ranks, node.Host)
	}
	ranks := List(names, p.More)
	if p.More > 0 {
		ranks += Plural(" node", p.More)
	}
	return fmt.Sprintf(
		"%s %s %s not reached init_process_group; %d of %d ranks %s been waiting for %v",
		Plural("rank", missing), ranks, have(missing), p.Reached, p.Ranks, have(p.Reached), waited)
}

func have(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// Unreached is a worker that has not reached init_process_group.
type Unreached struct {
	Rank int `json:"rank"`
	// Python is the process that runs Python: the worker, or a descendant of it; 0 if there is
	// none.
	Python int `json:"python,omitempty"`
}

// Reached is the value of reached/ID: all other workers of the agent have reached
// init_process_group.
type Reached struct {
	Missing []Unreached `json:"missing,omitempty"`
}

// InitQuery is the value of signal/look.
type InitQuery struct{}

// Connecting is the value of connecting/ID: how many workers of the agent have been trying to
// connect to rank 0, all for that long.
type Connecting struct {
	Ranks int           `json:"ranks"`
	For   time.Duration `json:"for"`
}
