// Package daemon knows the processes of launchers that start and end the tasks of a node.
package daemon

import (
	"io/fs"
	"slices"

	"rdzv/internal/procfs"
)

// names are as in /proc/PID/comm. When one of these processes, or a process between it and a task,
// has ended, the job is over, whether or not the launcher ends its tasks.
var names = []string{
	"mpirun", "mpiexec", "orterun", "mpirun.openmpi", "mpiexec.openmpi", "orted", // Open MPI 4
	"prterun", "prted", "prte", // Open MPI 5
	"hydra_pmi_proxy", "hydra_bstrap_proxy", "pmi_proxy", // MPICH, Intel MPI, MVAPICH2
	"slurmstepd", "flux-shell", "palsd", "jsmd",
}

// Is tells whether a process with this name is one of them.
func Is(name string) bool { return slices.Contains(names, name) }

// Of returns that of a task, the nearest one among its ancestors.
func Of(proc fs.FS, task int) (daemon procfs.Process, found bool) {
	all := procfs.Ancestors(proc, task)
	if i := slices.IndexFunc(all, func(p procfs.Process) bool { return Is(p.Name) }); i >= 0 {
		return all[i], true
	}
	return procfs.Process{}, false
}
