package envmap

// Flux sets FLUX_TASK_RANK, FLUX_TASK_LOCAL_ID, FLUX_JOB_SIZE, FLUX_JOB_NNODES and FLUX_JOB_ID in
// each task, and PMI_* for its own PMI-1 (documented: flux-environment(7)). A batch script of Flux
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
	r.requireEqual(r.p.Rank, "FLUX_TASK_RANK", "PMI_RANK")
	r.requireEqual(r.p.Size, "FLUX_JOB_SIZE", "PMI_SIZE")
	r.setJob(r.env["FLUX_JOB_ID"], r.env.shown("FLUX_JOB_ID"))
}
