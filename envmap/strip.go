package envmap

import (
	"slices"
	"strings"
)

// strip removes variables that a worker must not have: the agent's own, and, if launcher is set,
// the launcher's rank variables.
func (w *worker) strip(launcher bool) {
	for name := range w.env {
		if strings.HasPrefix(name, "RDZV_") || launcher && isTaskVariable(name) {
			w.unset = append(w.unset, name)
		}
	}
}

// taskVariables tell a process that it is one task of a launcher. A worker that is not that task
// must not have them (docs/launchers.md, section i): with Open MPI's and Hydra's, MPI_Init of the
// second child fails or hangs; Open MPI refuses to start with a SLURM_STEP_ID and without a PMI;
// and accelerate reads PMI_SIZE as the world size.
var taskVariables = []string{
	"MPI_LOCALRANKID", "MPI_LOCALNRANKS", "HYDI_CONTROL_FD",
	"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS",
	"SLURM_TASK_PID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS",
	"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE",
	"PALS_RANKID", "PALS_LOCAL_RANKID",
	"FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID",
}

var taskPrefixes = []string{"OMPI_", "PMIX_", "PRTE_", "PMI_", "MV2_COMM_WORLD_", "JSM_NAMESPACE_"}

func isTaskVariable(name string) bool {
	if strings.HasPrefix(name, "OMPI_ALLOW_RUN_AS_ROOT") {
		return false // a setting of the user
	}
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.Contains(taskVariables, name) || slices.ContainsFunc(taskPrefixes, hasPrefix)
}
