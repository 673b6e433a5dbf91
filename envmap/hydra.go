package envmap

import "strings"

// Hydra, the mpiexec of MPICH (measured: 4.0.2, 4.2.1) and of Intel MPI (documented), sets PMI_RANK, PMI_SIZE,
// MPI_LOCALRANKID and MPI_LOCALNRANKS. It tells neither nodes nor a job id in the environment; both can be asked
// for through PMI on PMI_FD.
var pmiWorld = []string{"PMI_RANK", "PMI_SIZE"}

// seenHydra leaves out the PMI_ variables that Slurm, Flux and PALS set for PMIs of their own.
func seenHydra(env Env) []string {
	if slurmsPMI(env) || env.first("FLUX_TASK_RANK", "PALS_RANKID") != "" && !env.has("MPI_LOCALRANKID") {
		return nil
	}
	return append(setOf(env, pmiWorld...), setOf(env, "MPI_LOCALRANKID")...)
}

// slurmsPMI reports that PMI_* come from Slurm: only Slurm sets PMI_JOBID, and only Hydra sets MPI_LOCALRANKID.
func slurmsPMI(env Env) bool { return env.has("PMI_JOBID") && !env.has("MPI_LOCALRANKID") }

// seenIntelMPI tells Intel's Hydra by the variables of its mpirun script and of its settings. A module of Intel MPI that
// is loaded (I_MPI_ROOT) says nothing about which mpiexec ran.
func seenIntelMPI(env Env) []string {
	seen := seenHydra(env)
	if len(seen) == 0 {
		return nil
	}
	for name := range env {
		if name == "I_MPI_MPIRUN" || strings.HasPrefix(name, "I_MPI_HYDRA_") || strings.HasPrefix(name, "I_MPI_INFO_") {
			return seen
		}
	}
	return nil
}

func readHydra(r *reader) {
	r.must("rank", "PMI_RANK")
	r.must("size", "PMI_SIZE")
	r.take("local rank", "MPI_LOCALRANKID")
	r.take("local size", "MPI_LOCALNRANKS")
}
