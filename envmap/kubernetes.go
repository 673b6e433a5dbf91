package envmap

// An Indexed Job of Kubernetes sets JOB_COMPLETION_INDEX in each pod, and no size (documented:
// kubernetes.io, Jobs).
func matchKubernetes(env Env) []string { return env.setOf("JOB_COMPLETION_INDEX") }

func readKubernetes(r *reader) {
	r.require("rank", "JOB_COMPLETION_INDEX")
	inferPodPerNode(r)
	r.setUnknown("size", "a Kubernetes Job does not set it: give --nodes N, the Job's completions")
}
