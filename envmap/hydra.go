package envmap

import "strings"

// Hydra, the mpiexec of MPICH (measured: 4.0.2, 4.2.1) and of Intel MPI (documented), sets
// PMI_RANK, PMI_SIZE, MPI_LOCALRANKID and MPI_LOCALNRANKS. It sets neither the nodes nor a job id;
// both can be queried through PMI on PMI_FD.
var pmiWorld = []string{"PMI_RANK", "PMI_SIZE"}

// matchHydra excludes the PMI_ variables that Slurm, Flux and PALS set for their own PMI.
func matchHydra(env Env) []string {
	others := env.first("FLUX_TASK_RANK", "PALS_RANKID") != "" && !env.has("MPI_LOCALRANKID")
	if others || isSlurmPMI(env) {
		return nil
	}
	return append(env.setOf(pmiWorld...), env.setOf("MPI_LOCALRANKID")...)
}

// isSlurmPMI reports that PMI_* were set by Slurm: only Slurm sets PMI_JOBID, and only Hydra sets
// MPI_LOCALRANKID.
func isSlurmPMI(env Env) bool { return env.has("PMI_JOBID") && !env.has("MPI_LOCALRANKID") }

// matchIntelMPI distinguishes Intel's Hydra by the variables of its mpirun script and of its
// settings. I_MPI_ROOT, set by a loaded module, does not say which mpiexec ran.
func matchIntelMPI(env Env) []string {
	matched := matchHydra(env)
	if len(matched) == 0 {
		return nil
	}
	for name := range env {
		if name == "I_MPI_MPIRUN" ||
			strings.HasPrefix(name, "I_MPI_HYDRA_") || strings.HasPrefix(name, "I_MPI_INFO_") {
			return matched
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
