package envmap

import "strings"

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
