package envmap

// An Indexed Job of Kubernetes sets JOB_COMPLETION_INDEX in each pod, and no size (documented: kubernetes.io, Jobs).
func seenKubernetes(env Env) []string { return setOf(env, "JOB_COMPLETION_INDEX") }

func readKubernetes(r *reader) {
	r.must("rank", "JOB_COMPLETION_INDEX")
	onePerNode(r, "a pod is a node")
	r.untold("size", "a Kubernetes Job does not tell it: give --nodes N, the Job's completions")
}
