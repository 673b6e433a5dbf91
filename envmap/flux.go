package envmap

// Flux sets FLUX_TASK_RANK, FLUX_TASK_LOCAL_ID, FLUX_JOB_SIZE, FLUX_JOB_NNODES and FLUX_JOB_ID in each task, and PMI_* of its
// own PMI-1 (documented: flux-environment(7)). A batch script of Flux has no task variables.
func seenFlux(env Env) []string {
	if !env.has("FLUX_TASK_RANK") {
		return nil
	}
	return setOf(env, "FLUX_TASK_RANK", "FLUX_JOB_SIZE")
}

func readFlux(r *reader) {
	r.must("rank", "FLUX_TASK_RANK")
	r.must("size", "FLUX_JOB_SIZE")
	r.take("local rank", "FLUX_TASK_LOCAL_ID")
	r.take("nodes", "FLUX_JOB_NNODES")
	r.same(r.p.Rank, "FLUX_TASK_RANK", "PMI_RANK")
	r.same(r.p.Size, "FLUX_JOB_SIZE", "PMI_SIZE")
	r.job(r.env["FLUX_JOB_ID"], "FLUX_JOB_ID="+r.env["FLUX_JOB_ID"])
}
