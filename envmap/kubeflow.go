package envmap

import "strings"

// PyTorchJob of Kubeflow sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT of the *pod*, one task
// per pod; the trainer of version 2 sets torchrun's PET_NNODES, PET_NODE_RANK, PET_NPROC_PER_NODE
// and PET_MASTER_ADDR (documented: pkg/constants of both). Newer PyTorchJobs set both. The address
// is the name of a headless service, which resolves to the pod of rank 0; in that pod PyTorchJob
// sets it to localhost.
func matchKubeflow(env Env) []string {
	if set := env.setOf("PET_NODE_RANK", "PET_NNODES"); len(set) > 0 {
		return set
	}
	if rankIsPod(env) {
		return append(env.setOf("RANK", "WORLD_SIZE"), "KUBERNETES_SERVICE_HOST")
	}
	return nil
}

// rankIsPod reports that RANK is that of a pod: the process runs on Kubernetes, and nothing has
// numbered processes inside the pod.
func rankIsPod(env Env) bool {
	if env.has("TORCHELASTIC_RUN_ID") || env.has("LOCAL_RANK") {
		return false
	}
	return env.has("PET_NODE_RANK") ||
		env.has("KUBERNETES_SERVICE_HOST") && env.first("RANK", "WORLD_SIZE") != ""
}

func readKubeflow(r *reader) {
	if r.env.first("PET_NODE_RANK", "PET_NNODES") != "" {
		readNodeRange(r)
		r.require("rank", "PET_NODE_RANK")
		r.p.PerNode = r.env["PET_NPROC_PER_NODE"]
	} else {
		r.require("rank", "RANK")
		r.require("size", "WORLD_SIZE")
	}
	r.p.Master = r.env[r.env.first("PET_MASTER_ADDR", "MASTER_ADDR")]
	inferPodPerNode(&r.p)
}

// readNodeRange reads PET_NNODES, which may be torchrun's range MIN:MAX. A range is a size only if
// MIN and MAX are equal; otherwise the pods have no ranks before they have met.
func readNodeRange(r *reader) {
	low, high, isRange := strings.Cut(r.env["PET_NNODES"], ":")
	if !isRange || r.err != nil {
		r.require("size", "PET_NNODES")
		return
	}
	n, err := parseNumber("PET_NNODES", low)
	if _, notHigh := parseNumber("PET_NNODES", high); err == nil {
		err = notHigh
	}
	if r.err = err; err != nil {
		return
	}
	if low != high {
		store, _, _ := strings.Cut(r.env["PET_RDZV_ENDPOINT"], ":")
		if store == "" {
			store = "HOST"
		}
		r.err = &Error{
			Text: "cannot determine the size: " + r.env.shown("PET_NNODES") + " is a range",
			Hint: "for a variable number of pods: rdzv exec --launcher none --nodes " +
				r.env["PET_NNODES"] + " --store " + store,
		}
		return
	}
	r.p.set("size", n, r.env.shown("PET_NNODES"))
}

// inferPodPerNode sets what follows from one task per pod.
func inferPodPerNode(p *Placement) {
	const why = "each pod counts as a node"
	p.infer("local rank", 0, why)
	p.infer("local size", 1, why)
	p.infer("node rank", p.Rank, why)
	p.infer("nodes", p.Size, why)
}

// An Indexed Job of Kubernetes sets JOB_COMPLETION_INDEX in each pod, and no size (documented:
// kubernetes.io, Jobs).
func readKubernetes(r *reader) {
	r.require("rank", "JOB_COMPLETION_INDEX")
	inferPodPerNode(&r.p)
	r.setUnknown("size", "a Kubernetes Job does not set it: give --nodes N, the Job's completions")
}
