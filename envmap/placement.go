package envmap

import (
	"strconv"
	"strings"
)

// Placement says which of the launcher's tasks this process is. Numbers are of tasks, not of workers: where a launcher
// starts one task per node and the agent several workers, the world is larger. Unknown where the launcher does not tell.
type Placement struct {
	Launcher  Launcher
	Rank      int // 0 to Size-1
	Size      int // all tasks of the run
	LocalRank int // 0 to LocalSize-1, among the tasks of this node
	LocalSize int // tasks on this node; may differ between nodes
	NodeRank  int // 0 to Nodes-1
	Nodes     int // nodes that have tasks

	// Job is the launcher's public identity of this run, the same in all its tasks: for Slurm cluster.job.step, for
	// Open MPI 4 the job id and mpirun's port, for Open MPI 5 the PMIx namespace. "" if the launcher has none. Never a secret.
	Job string
	// PerNode is the number of workers per task that the launcher asks for, as text for ProcsPerNode ("" if it does not).
	PerNode string
	// Master is the name or address of rank 0's host where the launcher tells it (Kubeflow, torchrun), "" elsewhere.
	Master string
	// Advice holds a sentence for each thing that the user should know of this placement.
	Advice []string

	rows []Explained
}

// Explained is one line of an explanation.
type Explained struct {
	What  string // "launcher", "rank", ..., "ignored"
	Value string // the value, "unknown", or for what was ignored the variables with their values
	From  string // the variable it was taken from, as NAME=VALUE, or how it follows
	Note  string // why, or what to do
}

// Explain returns how the placement came about: the launcher and the variables by which it was recognised, each value
// with its source, and each set of variables that was ignored with the reason.
func (p Placement) Explain() []Explained {
	rows := []Explained{}
	for _, row := range p.rows {
		if row.What == "launcher" {
			rows = append(rows, row)
		}
	}
	for _, n := range numbers {
		rows = append(rows, p.Source(n.what))
	}
	for _, row := range p.rows {
		if p.number(row.What) == nil && row.What != "launcher" {
			rows = append(rows, row)
		}
	}
	for _, advice := range p.Advice {
		rows = append(rows, Explained{What: "note", Note: advice})
	}
	return rows
}

// numbers are the rows of an explanation that are numbers, with the variable in which a worker has each.
var numbers = []struct {
	what, variable string
	in             func(*Placement) *int
}{
	{"rank", "RANK", func(p *Placement) *int { return &p.Rank }},
	{"size", "WORLD_SIZE", func(p *Placement) *int { return &p.Size }},
	{"local rank", "LOCAL_RANK", func(p *Placement) *int { return &p.LocalRank }},
	{"local size", "LOCAL_WORLD_SIZE", func(p *Placement) *int { return &p.LocalSize }},
	{"node rank", "NODE_RANK", func(p *Placement) *int { return &p.NodeRank }},
	{"nodes", "GROUP_WORLD_SIZE", func(p *Placement) *int { return &p.Nodes }},
}

// number returns the number that a row's first column names, nil if it is none.
func (p *Placement) number(what string) *int {
	for _, n := range numbers {
		if n.what == what {
			return n.in(p)
		}
	}
	return nil
}

// Source returns the line of one number, "rank", "size", "local rank", "local size", "node rank" or "nodes": where it
// came from, or, in Note, why it is unknown and how to get it.
func (p Placement) Source(what string) Explained {
	for _, row := range p.rows {
		if row.What == what {
			return row
		}
	}
	row := Explained{What: what, Value: "unknown"}
	for _, n := range numbers {
		if n.what == what {
			row.Note = string(p.Launcher) + " does not tell it; rdzv exec agrees on it and sets " + n.variable
		}
	}
	if p.Launcher == None {
		row.Note = strings.Replace(row.Note, string(None)+" does not tell", "no launcher tells", 1)
	}
	return row
}

// derive fills in what follows from what the launcher told, by arithmetic alone.
func (p *Placement) derive() {
	if p.Size > 0 && p.LocalSize == p.Size {
		p.follow("nodes", 1, "all "+strconv.Itoa(p.Size)+" tasks are on this node")
	}
	if p.Nodes == 1 {
		p.follow("node rank", 0, "there is one node")
		p.follow("local rank", p.Rank, "there is one node")
		p.follow("local size", p.Size, "there is one node")
	}
	if p.Size > 0 && p.Nodes == p.Size {
		p.follow("local rank", 0, "there is one task per node")
		p.follow("local size", 1, "there is one task per node")
		p.follow("node rank", p.Rank, "there is one task per node")
	}
}

// follow sets a number that is not known yet.
func (p *Placement) follow(what string, n int, why string) {
	if *p.number(what) == Unknown && n != Unknown {
		p.found(what, n, why)
	}
}

// found sets a number and explains it.
func (p *Placement) found(what string, n int, from string) {
	*p.number(what) = n
	p.rows = append(p.rows, Explained{What: what, Value: strconv.Itoa(n), From: from})
}
