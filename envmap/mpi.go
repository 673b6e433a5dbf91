package envmap

import (
	"strings"
)

// mpirun of Open MPI sets OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE} (measured: 4.1.4,
// 5.0.7, PRRTE main). OMPI_COMM_WORLD_NODE_RANK is the local rank counted over several jobs;
// neither version sets a node rank. Other OMPI_ variables do not identify Open MPI: Slurm 24 sets
// OMPI_MCA_plm_slurm_args in every process.
var ompiWorld = []string{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}

// isORTE reports that mpirun of Open MPI 4 started this process. Open MPI 5 (PRRTE) has other
// variables; OMPI_VERSION alone identifies 5.0, but PRRTE's development version does not set it.
func isORTE(env Env) bool {
	return env.first("OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_jobid") != ""
}

// matchOpenMPI4 excludes jsrun, which also sets OMPI_COMM_WORLD_*, for IBM's Open MPI (documented).
func matchOpenMPI4(env Env) []string {
	world := env.setOf(ompiWorld...)
	other := env.first("PRTE_LAUNCHED", "OMPI_VERSION", "JSM_NAMESPACE_RANK")
	if len(world) == 0 || other != "" && !isORTE(env) {
		return nil
	}
	return append(world, env.setOf("OMPI_MCA_ess_base_jobid")...)
}

func matchOpenMPI5(env Env) []string {
	world, prrte := env.setOf(ompiWorld...), env.setOf("PRTE_LAUNCHED", "OMPI_VERSION")
	if len(world) > 0 && len(prrte) > 0 && !isORTE(env) {
		return append(world, prrte...)
	}
	// Plain prterun, without Open MPI's personality.
	plain := env.setOf("PRTE_LAUNCHED", "PMIX_RANK")
	if len(plain) == 2 && strings.HasPrefix(env["PMIX_NAMESPACE"], "prte") {
		return plain
	}
	return nil
}

func readOpenMPI4(r *reader) {
	readOMPIWorld(r)
	r.take("nodes", "OMPI_MCA_orte_num_nodes") // nodes with ranks, not all nodes of the allocation
	id := r.env.first("OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE")
	if id == "" {
		return
	}
	// The job id is a hash of 16 bits, so that two mpiruns may have the same one; together with the
	// port of mpirun's own address it is unique on one host, and very likely on several.
	job, uri := r.env[id], r.env["OMPI_MCA_orte_hnp_uri"]
	if i := strings.LastIndexByte(uri, ':'); i >= 0 && strings.Contains(uri, "tcp") {
		job += "-" + uri[i+1:]
	}
	r.setJob(job, r.env.shown(id)+", port of mpirun")
}

func readOpenMPI5(r *reader) {
	if r.env.first(ompiWorld...) != "" || !r.env.has("PRTE_LAUNCHED") {
		readOMPIWorld(r)
	} else {
		r.require("rank", "PMIX_RANK")
		r.setUnknown("size",
			"plain prterun does not set it: use mpirun, or prterun --personality ompi")
	}
	r.setJob(r.env["PMIX_NAMESPACE"], r.env.shown("PMIX_NAMESPACE"))
}

func readOMPIWorld(r *reader) {
	r.takeWorld("OMPI_COMM_WORLD_")
	r.requireEqual("rank", "PMIX_RANK")
}

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

// These launchers could not be run: their variables are documented, not measured.

// mpirun_rsh and mpiexec of MVAPICH2 set MV2_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
// (documented: Hugging Face accelerate reads these names); its Hydra also sets PMI_*.
func readMVAPICH2(r *reader) { r.takeWorld("MV2_COMM_WORLD_") }

// HPE Cray PALS (mpiexec on PBS systems) also sets the variables of its own PMI (documented: the
// cray-pals plugin of Flux, ezpz). Only PMI_SIZE holds the size.
func readPALS(r *reader) {
	r.require("rank", "PALS_RANKID")
	r.require("size", "PALS_SIZE", "PMI_SIZE")
	r.take("local rank", "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK")
	r.take("local size", "PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE")
	r.take("node rank", "PALS_NODEID")
	r.requireEqual("rank", "PMI_RANK")
	r.setJob(r.env["PALS_APID"], r.env.shown("PALS_APID"))
}

// Flux also sets PMI_* for its own PMI-1 (documented: flux-environment(7)). A batch script of Flux
// has FLUX_JOB_SIZE but no task variables.
func matchFlux(env Env) []string {
	if !env.has("FLUX_TASK_RANK") {
		return nil
	}
	return env.setOf("FLUX_TASK_RANK", "FLUX_JOB_SIZE")
}

func readFlux(r *reader) {
	r.require("rank", "FLUX_TASK_RANK")
	r.require("size", "FLUX_JOB_SIZE")
	r.take("local rank", "FLUX_TASK_LOCAL_ID")
	r.take("nodes", "FLUX_JOB_NNODES")
	r.requireEqual("rank", "PMI_RANK")
	r.requireEqual("size", "PMI_SIZE")
	r.setJob(r.env["FLUX_JOB_ID"], r.env.shown("FLUX_JOB_ID"))
}

// jsrun of IBM Spectrum LSF sets JSM_NAMESPACE_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE} (documented:
// Lightning's LSF environment).
func readJSM(r *reader) {
	r.takeWorld("JSM_NAMESPACE_")
	r.requireEqual("rank", "OMPI_COMM_WORLD_RANK")
	id := r.env["LSB_JOBID"]
	if step := r.env["JSM_NAMESPACE_ID"]; id != "" && step != "" {
		id += "." + step
	}
	r.setJob(id, r.env.shown("LSB_JOBID", "JSM_NAMESPACE_ID"))
}
