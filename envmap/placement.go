package envmap

import "strconv"

// Placement is which of the launcher's tasks this process is. Numbers count tasks, not workers: if
// a launcher starts one task per node and the agent several workers, the world is larger. A number
// that the launcher does not set is Unknown.
type Placement struct {
	Launcher  Launcher
	Rank      int // 0 to Size-1
	Size      int // tasks of the run
	LocalRank int // 0 to LocalSize-1, among the tasks of this node
	LocalSize int // tasks on this node; may differ between nodes
	NodeRank  int // 0 to Nodes-1
	Nodes     int // nodes that have tasks

	// Job is the launcher's public identity of this run, equal in all its tasks: cluster.job.step
	// for Slurm, the job id and mpirun's port for Open MPI 4, the PMIx namespace for Open MPI 5.
	// It is "" if the launcher has none, and never a secret.
	Job string
	// PerNode is the number of workers per task that the launcher requests, in the form that
	// ProcsPerNode reads; "" if it requests none.
	PerNode string
	// Master is the name or address of rank 0's host, if the launcher sets it (Kubeflow, torchrun).
	Master string
	// Advice holds sentences about this placement for the user.
	Advice []string

	rows []Row
}

// A Row is one line of an explanation.
type Row struct {
	What  string // "launcher", "rank", ..., "ignored"
	Value string // the value, "unknown", or the ignored variables with their values
	From  string // its source: a variable as NAME=VALUE, or what it follows from
	Note  string // the reason, or what to do
}

// Explain returns how the placement was determined: the launcher and the variables by which it was
// recognised, each value with its source, and each set of ignored variables with the reason.
func (p Placement) Explain() []Row {
	rows := []Row{}
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
		rows = append(rows, Row{What: "note", Note: advice})
	}
	return rows
}

// Source returns the row of one number: "rank", "size", "local rank", "local size", "node rank" or
// "nodes". If the number is unknown, Note says why and which variable rdzv exec sets to it.
func (p Placement) Source(what string) Row {
	for _, row := range p.rows {
		if row.What == what {
			return row
		}
	}
	row := Row{What: what, Value: "unknown"}
	for _, n := range numbers {
		switch {
		case n.what != what:
		case p.Launcher == None:
			row.Note = "no launcher sets it; rdzv exec sets " + n.variable
		default:
			row.Note = "not set by " + string(p.Launcher) + "; rdzv exec sets " + n.variable
		}
	}
	return row
}

// numbers are the numbers of a placement, with the variable that holds each in a worker.
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

// number returns the number with this name, nil if there is none.
func (p *Placement) number(what string) *int {
	for _, n := range numbers {
		if n.what == what {
			return n.in(p)
		}
	}
	return nil
}

// derive infers unknown numbers from the known ones, by arithmetic alone.
func (p *Placement) derive() {
	if p.Size > 0 && p.LocalSize == p.Size {
		p.infer("nodes", 1, "all "+strconv.Itoa(p.Size)+" tasks are on this node")
	}
	if p.Nodes == 1 {
		p.infer("node rank", 0, "there is one node")
		p.infer("local rank", p.Rank, "there is one node")
		p.infer("local size", p.Size, "there is one node")
	}
	if p.Size > 0 && p.Nodes == p.Size {
		p.infer("local rank", 0, "there is one task per node")
		p.infer("local size", 1, "there is one task per node")
		p.infer("node rank", p.Rank, "there is one task per node")
	}
}

// infer sets a number that is still unknown.
func (p *Placement) infer(what string, n int, why string) {
	if *p.number(what) == Unknown && n != Unknown {
		p.set(what, n, why)
	}
}

// set sets a number and records its source.
func (p *Placement) set(what string, n int, from string) {
	*p.number(what) = n
	p.rows = append(p.rows, Row{What: what, Value: strconv.Itoa(n), From: from})
}

// check finds numbers that contradict one another.
func check(p Placement) error {
	for _, c := range []struct {
		part, whole string
		least       int // smallest valid difference of whole and part
	}{
		{"rank", "size", 1}, {"local rank", "local size", 1}, {"node rank", "nodes", 1},
		{"local rank", "size", 1}, {"node rank", "size", 1},
		{"local size", "size", 0}, {"nodes", "size", 0},
	} {
		part, whole := *p.number(c.part), *p.number(c.whole)
		text := "cannot determine the placement: "
		switch {
		case whole == 0:
			text += p.Source(c.whole).describe() + " is not possible"
		case part != Unknown && whole != Unknown && whole-part < c.least:
			text += p.Source(c.part).describe() + " contradicts " + p.Source(c.whole).describe()
		default:
			continue
		}
		return &Error{Text: text, Hint: hintLauncher}
	}
	return nil
}

// describe shows a number with its source: "rank 4 (OMPI_COMM_WORLD_RANK=4)".
func (row Row) describe() string {
	if row.From == "" {
		return row.What + " " + row.Value
	}
	return row.What + " " + row.Value + " (" + row.From + ")"
}
