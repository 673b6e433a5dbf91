package envmap

import "strings"

// Open MPI's mpirun sets OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE} (measured: 4.1.4, 5.0.7, PRRTE main).
// OMPI_COMM_WORLD_NODE_RANK is the local rank counted over several jobs: neither version tells a node rank.
// Other OMPI_ variables mean nothing: Slurm 24 sets OMPI_MCA_plm_slurm_args in every process.
var ompiWorld = []string{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}

// orteMarks are set by mpirun of Open MPI 4 (ORTE) in each rank.
var orteMarks = []string{"OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_jobid"}

func seenOpenMPI4(env Env) []string {
	world := setOf(env, ompiWorld...)
	if len(world) == 0 || prte(env) || jsrun(env) {
		return nil
	}
	return append(world, setOf(env, "OMPI_MCA_ess_base_jobid")...)
}

func seenOpenMPI5(env Env) []string {
	world := setOf(env, ompiWorld...)
	switch {
	case len(world) > 0 && prte(env):
		return append(world, setOf(env, "PRTE_LAUNCHED", "OMPI_VERSION")...)
	case env.has("PRTE_LAUNCHED") && env.has("PMIX_RANK") && strings.HasPrefix(env["PMIX_NAMESPACE"], "prte"):
		return []string{"PRTE_LAUNCHED", "PMIX_RANK"} // plain prterun, without Open MPI's personality
	}
	return nil
}

// prte tells Open MPI 5 from 4. OMPI_VERSION alone would do for 5.0, but PRRTE's development version lacks it.
func prte(env Env) bool {
	return env.first(orteMarks...) == "" && (env.has("PRTE_LAUNCHED") || env.has("OMPI_VERSION"))
}

// jsrun sets OMPI_COMM_WORLD_* too, for IBM's Open MPI (documented): it is recognised by its own variables.
func jsrun(env Env) bool {
	return env.has("JSM_NAMESPACE_RANK") && env.first(orteMarks...) == ""
}

func readOpenMPI4(r *reader) {
	readOMPIWorld(r)
	r.take("nodes", "OMPI_MCA_orte_num_nodes") // nodes with ranks, not all nodes of the allocation
	id := r.env.first("OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE")
	if id != "" {
		r.job(r.env[id]+mpirunPort(r.env["OMPI_MCA_orte_hnp_uri"]), id+"="+r.env[id]+", port of mpirun")
	}
}

// mpirunPort returns "-PORT" of mpirun's own address. The job id is 16 bits of a hash, so that two mpiruns may share it;
// with the port they cannot on one host, and hardly will on two.
func mpirunPort(uri string) string {
	if i := strings.LastIndexByte(uri, ':'); i >= 0 && strings.Contains(uri, "tcp") {
		return "-" + uri[i+1:]
	}
	return ""
}

func readOpenMPI5(r *reader) {
	if len(setOf(r.env, ompiWorld...)) > 0 || !r.env.has("PRTE_LAUNCHED") {
		readOMPIWorld(r)
	} else {
		r.must("rank", "PMIX_RANK")
		r.untold("size", "plain prterun does not tell it: use mpirun, or prterun --personality ompi")
	}
	r.job(r.env["PMIX_NAMESPACE"], "PMIX_NAMESPACE="+r.env["PMIX_NAMESPACE"])
}

func readOMPIWorld(r *reader) {
	r.must("rank", "OMPI_COMM_WORLD_RANK")
	r.must("size", "OMPI_COMM_WORLD_SIZE")
	r.take("local rank", "OMPI_COMM_WORLD_LOCAL_RANK")
	r.take("local size", "OMPI_COMM_WORLD_LOCAL_SIZE")
	r.same(r.p.Rank, "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
}
