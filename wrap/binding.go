package wrap

import (
	"fmt"
	"slices"
)

// Binding says where a worker runs and which memory it gets. It is set before the program begins,
// and inherited by what the program starts. What the kernel refuses, for example CPUs outside of
// the cgroup, is left as it is.
type Binding struct {
	// CPUs are those on which the worker may run (sched_setaffinity(2)); empty is the same as this
	// process.
	CPUs []int
	// Node is the NUMA node from which the worker's memory is taken while it has some
	// (MPOL_PREFERRED of set_mempolicy(2)); nil is the policy of this process.
	Node *int
}

func (b Binding) check() error {
	switch {
	case slices.ContainsFunc(b.CPUs, func(cpu int) bool { return cpu < 0 }):
		return fmt.Errorf("cannot bind it to CPUs %v: negative number", b.CPUs)
	case b.Node != nil && *b.Node < 0:
		return fmt.Errorf("cannot bind it to NUMA node %d: negative number", *b.Node)
	}
	return nil
}
