package envmap

import (
	"slices"
	"strconv"
)

// BindMode selects whether workers are bound to NUMA nodes.
type BindMode string

const (
	// BindNone leaves workers where the launcher has put them. It is the default.
	BindNone BindMode = "none"
	// BindNUMA binds each worker to the NUMA node of its device, or to its share of the nodes.
	BindNUMA BindMode = "numa"
)

// Check returns an *Error if mode is not one of the above, or "".
func (mode BindMode) Check() error {
	switch mode {
	case "", BindNone, BindNUMA:
		return nil
	}
	return &Error{Text: "cannot use binding " + strconv.Quote(string(mode)) + ": not none or numa"}
}

// Binding is where one worker is to run. The zero value leaves it where the agent runs.
type Binding struct {
	Nodes  []int  // NUMA nodes; empty if the worker is not bound
	CPUs   []int  // those CPUs of the nodes that the agent may use
	Memory bool   // the only node of Nodes has memory for the worker
	Why    string // what the nodes follow from, or why there are none

	threads int // for OMP_NUM_THREADS, at most
}

// Bind returns the binding of worker i of the agent's workers. It is never wider than what this
// process may use: if that leaves no CPU, the worker is not bound.
//
// The nodes are that of the worker's device, else an even share. The share is that among the
// workers of this node if the agent may use all CPUs of its cgroup; if it may not the launcher has
// divided them among its tasks, and the share is that among the agent's own workers.
func (n NUMA) Bind(id Identity, mode DeviceMode, i, workers int) Binding {
	usable := n.usable()
	if len(usable) == 0 {
		return Binding{Why: "the NUMA nodes of this host are not known"}
	}
	why := ""
	if d, err := assign(id, mode); err == nil && d.card.address != "" {
		why = "its device " + d.card.address
		if at := n.of(d.card.address); at != Unknown {
			return n.bindTo(n.nodes[at:at+1], n.sharing(id), why)
		}
		why += " is on no known NUMA node; "
	}
	if !n.bound {
		i, workers = id.LocalRank, id.LocalWorldSize
	}
	first := i * len(usable) / workers
	last := max(first+1, (i+1)*len(usable)/workers)
	why += "share " + itoa(i+1) + " of " + itoa(workers)
	return n.bindTo(usable[first:last], ceil(workers, len(usable)), why)
}

// bindTo binds a worker to nodes that so many workers share.
func (n NUMA) bindTo(nodes []numaNode, sharing int, why string) Binding {
	b := Binding{Why: why}
	for _, node := range nodes {
		b.Nodes, b.CPUs = append(b.Nodes, node.id), append(b.CPUs, node.cpus...)
	}
	slices.Sort(b.CPUs)
	if len(b.CPUs) == 0 {
		has := "no CPUs"
		if online := nodes[0].online; len(online) > 0 {
			has = cpuNames(online) + ", and the agent may use " + cpuNames(n.allowed)
		}
		return Binding{Why: why + " is on " + b.nodeList() + ", which has " + has}
	}
	b.Memory = len(nodes) == 1 && nodes[0].memory
	b.threads = max(1, cores(b.CPUs, n.siblings)/sharing)
	return b
}

// sharing estimates how many workers of this host are bound to the node of the same device: they
// are distributed evenly among the nodes that have devices, or among all if the launcher gave this
// worker a device of its own, so that those of the others are not known.
func (n NUMA) sharing(id Identity) int {
	among := map[int]bool{}
	if id.Visible.Count() > 1 {
		for _, c := range id.Visible.cards {
			among[n.of(c.address)] = true
		}
		return ceil(id.LocalWorldSize, len(among))
	}
	for _, node := range n.nodes {
		if len(node.online) > 0 {
			among[node.id] = true
		}
	}
	return ceil(id.LocalWorldSize, len(among))
}

func ceil(n, by int) int { return (n + by - 1) / by }

// nodeList is "NUMA node 1", or "NUMA nodes 0-3".
func (b Binding) nodeList() string {
	if len(b.Nodes) == 1 {
		return "NUMA node " + itoa(b.Nodes[0])
	}
	return "NUMA nodes " + cpuRanges(b.Nodes)
}

// String is "NUMA node 1: CPUs 16-31 and memory", or "not bound".
func (b Binding) String() string {
	if len(b.Nodes) == 0 {
		return "not bound"
	}
	s := b.nodeList() + ": " + cpuNames(b.CPUs)
	if b.Memory {
		s += " and memory"
	}
	return s
}

// Threads limits OMP_NUM_THREADS to the worker's share of the cores to which it is bound.
func (b Binding) Threads(threads int) int {
	if b.threads == 0 {
		return threads
	}
	return min(threads, b.threads)
}
