package record

// Waiting says which agents have joined and which have not. The host of the store reports it, at
// increasing intervals.
type Waiting struct {
	Roster
	Waited Seconds `json:"waited_seconds"` // since this agent began to host the store
}

// NodesDiffer says that the nodes differ in a fact that should be the same on all of them, such as
// the version of python, or in a variable. The host of the store reports it, when all agents have
// joined and before any worker starts, unless the difference is a problem (`--strict`).
type NodesDiffer struct {
	Comparison
}

func (n NodesDiffer) String() string { return "warning: " + n.Comparison.String() }

// Type is the name of the event.
func (Waiting) Type() string     { return "waiting" }
func (NodesDiffer) Type() string { return "nodes_differ" }
