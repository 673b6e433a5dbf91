package envmap

// jsrun of IBM Spectrum LSF sets JSM_NAMESPACE_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE} (documented:
// Lightning's LSF environment).
func matchJSM(env Env) []string {
	return env.setOf("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE")
}

func readJSM(r *reader) {
	r.require("rank", "JSM_NAMESPACE_RANK")
	r.require("size", "JSM_NAMESPACE_SIZE")
	r.take("local rank", "JSM_NAMESPACE_LOCAL_RANK")
	r.take("local size", "JSM_NAMESPACE_LOCAL_SIZE")
	r.requireEqual(r.p.Rank, "JSM_NAMESPACE_RANK", "OMPI_COMM_WORLD_RANK")
	id := r.env["LSB_JOBID"]
	if step := r.env["JSM_NAMESPACE_ID"]; id != "" && step != "" {
		id += "." + step
	}
	r.setJob(id, r.env.shown("LSB_JOBID", "JSM_NAMESPACE_ID"))
}
