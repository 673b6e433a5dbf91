package envmap

import (
	"slices"
	"strings"
)

// strip takes away what a worker must not have: the agent's own variables always, and the launcher's rank variables
// from workers that are not the launcher's tasks.
func (w *worker) strip(stripLauncher bool) {
	for name := range w.env {
		if strings.HasPrefix(name, "RDZV_") || stripLauncher && taskVariable(name) {
			w.unset = append(w.unset, name)
		}
	}
}

// taskVariables tell a process that it is one task of a launcher. A worker that is not that task must lose them
// (docs/launchers.md, section i): MPI_Init of the second child fails or hangs with Open MPI's and Hydra's, Open MPI
// refuses to start below a SLURM_STEP_ID without a PMI, and accelerate takes PMI_SIZE for the world's size.
var taskVariables = []string{
	"MPI_LOCALRANKID", "MPI_LOCALNRANKS", "HYDI_CONTROL_FD",
	"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS", "SLURM_TASK_PID",
	"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE",
	"PALS_RANKID", "PALS_LOCAL_RANKID",
	"FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID",
}

var taskPrefixes = []string{"OMPI_", "PMIX_", "PRTE_", "PMI_", "MV2_COMM_WORLD_", "JSM_NAMESPACE_"}

func taskVariable(name string) bool {
	if strings.HasPrefix(name, "OMPI_ALLOW_RUN_AS_ROOT") {
		return false // a setting of the user's
	}
	return slices.Contains(taskVariables, name) ||
		slices.ContainsFunc(taskPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
