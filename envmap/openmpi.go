package envmap

import "strings"

// mpirun of Open MPI sets OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE} (measured: 4.1.4,
// 5.0.7, PRRTE main). OMPI_COMM_WORLD_NODE_RANK is the local rank counted over several jobs;
// neither version sets a node rank. Other OMPI_ variables do not identify Open MPI: Slurm 24 sets
// OMPI_MCA_plm_slurm_args in every process.
var ompiWorld = []string{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}

// orteVariables are set by mpirun of Open MPI 4 (ORTE) in each rank.
var orteVariables = []string{"OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_jobid"}

func matchOpenMPI4(env Env) []string {
	world := env.setOf(ompiWorld...)
	if len(world) == 0 || isPRRTE(env) || isJSM(env) {
		return nil
	}
	return append(world, env.setOf("OMPI_MCA_ess_base_jobid")...)
}

func matchOpenMPI5(env Env) []string {
	world := env.setOf(ompiWorld...)
	if len(world) > 0 && isPRRTE(env) {
		return append(world, env.setOf("PRTE_LAUNCHED", "OMPI_VERSION")...)
	}
	// Plain prterun, without Open MPI's personality.
	plain := env.setOf("PRTE_LAUNCHED", "PMIX_RANK")
	if len(plain) == 2 && strings.HasPrefix(env["PMIX_NAMESPACE"], "prte") {
		return plain
	}
	return nil
}

// isPRRTE distinguishes Open MPI 5 from 4. OMPI_VERSION alone identifies 5.0, but PRRTE's
// development version does not set it.
func isPRRTE(env Env) bool {
	return env.first(orteVariables...) == "" && env.first("PRTE_LAUNCHED", "OMPI_VERSION") != ""
}

// isJSM detects jsrun, which also sets OMPI_COMM_WORLD_*, for IBM's Open MPI (documented).
func isJSM(env Env) bool {
	return env.has("JSM_NAMESPACE_RANK") && env.first(orteVariables...) == ""
}

func readOpenMPI4(r *reader) {
	readOMPIWorld(r)
	r.take("nodes", "OMPI_MCA_orte_num_nodes") // nodes with ranks, not all nodes of the allocation
	if id := r.env.first("OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"); id != "" {
		port := mpirunPort(r.env["OMPI_MCA_orte_hnp_uri"])
		r.setJob(r.env[id]+port, r.env.shown(id)+", port of mpirun")
	}
}

// mpirunPort returns "-PORT" of mpirun's own address. The job id is a hash of 16 bits, so that two
// mpiruns may have the same one; together with the port it is unique on one host, and very likely
// on several.
func mpirunPort(uri string) string {
	if i := strings.LastIndexByte(uri, ':'); i >= 0 && strings.Contains(uri, "tcp") {
		return "-" + uri[i+1:]
	}
	return ""
}

func readOpenMPI5(r *reader) {
	if len(r.env.setOf(ompiWorld...)) > 0 || !r.env.has("PRTE_LAUNCHED") {
		readOMPIWorld(r)
	} else {
		r.require("rank", "PMIX_RANK")
		r.setUnknown("size",
			"plain prterun does not set it: use mpirun, or prterun --personality ompi")
	}
	r.setJob(r.env["PMIX_NAMESPACE"], r.env.shown("PMIX_NAMESPACE"))
}

func readOMPIWorld(r *reader) {
	r.require("rank", "OMPI_COMM_WORLD_RANK")
	r.require("size", "OMPI_COMM_WORLD_SIZE")
	r.take("local rank", "OMPI_COMM_WORLD_LOCAL_RANK")
	r.take("local size", "OMPI_COMM_WORLD_LOCAL_SIZE")
	r.requireEqual(r.p.Rank, "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
}
