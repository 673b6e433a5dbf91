package agent

import (
	"fmt"

	"rdzv/envmap"
)

// UnusedAllocationError says that this agent is a job of its own although a resource manager has
// reserved more tasks or nodes: the launcher before "rdzv exec" was probably forgotten.
type UnusedAllocationError struct {
	Workers    int
	Allocation envmap.Allocation
}

func (e *UnusedAllocationError) Error() string {
	processes, reserved := "1 process", ""
	if e.Workers > 1 {
		processes = fmt.Sprintf("%d processes", e.Workers)
	}
	if e.Allocation.Tasks != envmap.Unknown {
		reserved = plural(e.Allocation.Tasks, "task") + " on "
	}
	reserved += plural(e.Allocation.Nodes, "node")
	return fmt.Sprintf("running %s; this %s job has %s: did you mean %q?",
		processes, e.Allocation.Manager, reserved, e.Allocation.Command+" rdzv exec ...")
}

// checkAllocation returns an [UnusedAllocationError] if nobody has said that this agent is to be
// the only one of its job, and it does not run all tasks itself.
func (l *Local) checkAllocation() error {
	c := l.Config
	if l.Placement.Launcher != envmap.None || c.Launcher != "" || c.Nodes != 0 {
		return nil
	}
	a := envmap.ReadAllocation(l.env, c.Root)
	if a.Nodes < 1 || a.Nodes == 1 && a.Tasks <= l.Workers {
		return nil
	}
	return &UnusedAllocationError{l.Workers, a}
}
