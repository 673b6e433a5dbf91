package envmap

import "slices"

// Placement is which of the launcher's tasks this process is. Numbers count tasks, not workers: if
// a launcher starts one task per node and the agent several workers, the world is larger. A number
// that the launcher does not set is Unknown.
type Placement struct {
	Launcher Launcher
	// Platform is the name of the platform that has started one process per node, such as
	// "LeaderWorkerSet" (see platforms.go); "" under other launchers and without one.
	// Its Launcher is one of Kubeflow to Kubernetes. "JobSet" may be a guess from the host name.
	Platform  string
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
	// Master is the name or address of rank 0's host, if it is known (platforms, torchrun, user).
	Master string
	// Unclaimed is "RANK=0 and WORLD_SIZE=2 are set" if variables say that this process is one of
	// several and this placement, which nobody has chosen, does not use them. Otherwise it is "".
	Unclaimed string
	// Lacking has the variables of launchers that are ignored because others are missing, each as
	// "OMPI_COMM_WORLD_RANK=3: OMPI_COMM_WORLD_SIZE is not set".
	Lacking []string
	// Advice holds sentences about this placement for the user.
	Advice []string

	peers   peers          // that started, or may have started, with this process
	noCount string         // what to do if the platform does not set the number of nodes
	sources map[string]Row // of the launcher and of each number that was found
	others  []Row          // the job, and ignored variables
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
	rows := []Row{p.sources["launcher"]}
	for _, n := range numbers {
		rows = append(rows, p.source(n.what))
	}
	rows = append(rows, p.others...)
	for _, advice := range p.Advice {
		rows = append(rows, Row{What: "note", Note: advice})
	}
	return rows
}

// source returns the row of one number. If the number is unknown, Note says why and which variable
// rdzv exec sets to it.
func (p Placement) source(what string) Row {
	if row, found := p.sources[what]; found {
		return row
	}
	why := "not set by " + string(p.Launcher)
	if p.Launcher == None {
		why = "no launcher sets it"
	}
	return Row{What: what, Value: "unknown", Note: why + "; rdzv exec sets " + find(what).variable}
}

// A number is one of the numbers of a placement, with the variable that holds it in a worker.
type number struct {
	what, variable string
	in             func(*Placement) *int
}

var numbers = []number{
	{"rank", "RANK", func(p *Placement) *int { return &p.Rank }},
	{"size", "WORLD_SIZE", func(p *Placement) *int { return &p.Size }},
	{"local rank", "LOCAL_RANK", func(p *Placement) *int { return &p.LocalRank }},
	{"local size", "LOCAL_WORLD_SIZE", func(p *Placement) *int { return &p.LocalSize }},
	{"node rank", "NODE_RANK", func(p *Placement) *int { return &p.NodeRank }},
	{"nodes", "GROUP_WORLD_SIZE", func(p *Placement) *int { return &p.Nodes }},
}

func find(what string) number {
	return numbers[slices.IndexFunc(numbers, func(n number) bool { return n.what == what })]
}

// derive infers unknown numbers from the known ones, by arithmetic alone.
func (p *Placement) derive() {
	if p.Size > 0 && p.LocalSize == p.Size {
		p.infer("nodes", 1, "all "+itoa(p.Size)+" tasks are on this node")
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
	if *find(what).in(p) == Unknown && n != Unknown {
		p.set(what, n, why)
	}
}

// set sets a number and records its source.
func (p *Placement) set(what string, n int, from string) {
	*find(what).in(p) = n
	p.sources[what] = Row{What: what, Value: itoa(n), From: from}
}

// check finds numbers that contradict one another.
func (p *Placement) check() *Error {
	for _, c := range []struct {
		part, whole string
		least       int // smallest valid difference of whole and part
	}{
		{"rank", "size", 1}, {"local rank", "local size", 1}, {"node rank", "nodes", 1},
		{"local rank", "size", 1}, {"node rank", "size", 1},
		{"local size", "size", 0}, {"nodes", "size", 0},
	} {
		part, whole := *find(c.part).in(p), *find(c.whole).in(p)
		text := "cannot determine the placement: "
		switch {
		case whole == 0:
			text += p.source(c.whole).describe() + " is not possible"
		case part != Unknown && whole != Unknown && whole-part < c.least:
			text += p.source(c.part).describe() + " contradicts " + p.source(c.whole).describe()
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
