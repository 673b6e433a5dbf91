package envmap

import "strings"

// Hydra, the mpiexec of MPICH (measured: 4.0.2, 4.2.1) and of Intel MPI (documented), sets neither
// the nodes nor a job id; both can be queried through PMI on PMI_FD. Flux, PALS and Slurm set PMI_
// variables for their own PMI, but only Hydra sets MPI_LOCALRANKID, and only Slurm sets PMI_JOBID.
func matchHydra(env Env) []string {
	other := env.first("FLUX_TASK_RANK", "PALS_RANKID", "PMI_JOBID")
	if other != "" && !env.has("MPI_LOCALRANKID") {
		return nil
	}
	return env.setOf("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID")
}

// matchIntelMPI distinguishes Intel's Hydra by the variables of its mpirun script and of its
// settings. I_MPI_ROOT, set by a loaded module, does not say which mpiexec ran.
func matchIntelMPI(env Env) []string {
	for name := range env {
		if name == "I_MPI_MPIRUN" ||
			strings.HasPrefix(name, "I_MPI_HYDRA_") || strings.HasPrefix(name, "I_MPI_INFO_") {
			return matchHydra(env)
		}
	}
	return nil
}

func readHydra(r *reader) {
	r.require("rank", "PMI_RANK")
	r.require("size", "PMI_SIZE")
	r.take("local rank", "MPI_LOCALRANKID")
	r.take("local size", "MPI_LOCALNRANKS")
}
