package record

import (
	"fmt"

	"rdzv/internal/plural"
)

// InitProgress says which workers have not reached torch's init_process_group some time after rank
// 0 did. A worker has reached it when it has connected to MASTER_PORT, or has ended.
type InitProgress struct {
	Ranks int `json:"world_size"` // number of workers of the job
	// number of workers that have reached it, or have ended
	Reached int `json:"reached"`
	// nodes of the workers that have not, the first 8
	Missing []NodeRanks `json:"missing,omitempty"`
	More    int         `json:"more_nodes,omitempty"` // how many other such nodes there are
	First   *int        `json:"first_rank,omitempty"` // the lowest of these ranks
	Host    string      `json:"first_host,omitempty"` // its node
	// process ID of the Python process of that rank
	Python int `json:"first_python_pid,omitempty"`
	// since rank 0 reached it, up to 2 s less than the real time; with `rank0_absent` since it started
	Waited Seconds `json:"waited_seconds"`
	// `true` if rank 0 does not listen on MASTER_PORT, so that no rank can reach it
	Absent bool `json:"rank0_absent,omitempty"`
	// with `rank0_absent`: MASTER_ADDR:MASTER_PORT
	Master string `json:"master,omitempty"`
}

// String returns a line for people: "rank 5 (node2) has not reached init_process_group; 7 of 8
// ranks have been waiting for 12s".
func (p InitProgress) String() string {
	waited := p.Waited.Rounded()
	if p.Absent {
		return fmt.Sprintf("rank 0 (%s) does not listen on MASTER_PORT (%s) yet, %v after its start",
			p.Host, p.Master, waited)
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
		ranks += plural.Noun(p.More, " node")
	}
	return fmt.Sprintf(
		"%s %s %s not reached init_process_group; %d of %d ranks %s been waiting for %v",
		plural.Noun(missing, "rank"), ranks, have(missing), p.Reached, p.Ranks, have(p.Reached), waited)
}

// Hint says how to find out more; "" if no rank is missing.
func (p InitProgress) Hint() string {
	switch {
	case p.Reached == p.Ranks || p.First == nil:
		return ""
	case p.Python == 0:
		return fmt.Sprintf("rdzv stacks, on any node of the job, shows where rank %d is", *p.First)
	}
	return fmt.Sprintf("rdzv stacks, on any node of the job, shows where rank %d is (pid %d on %s)",
		*p.First, p.Python, p.Host)
}

func have(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}
