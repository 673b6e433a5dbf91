package envmap

import "strings"

// Kubeflow's PyTorchJob sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT of the *pod*, one task per pod; the trainer of
// version 2 sets torchrun's PET_NNODES, PET_NODE_RANK, PET_NPROC_PER_NODE, PET_MASTER_ADDR (documented: pkg/constants of both).
// Newer PyTorchJobs set both. The address is the name of a headless service, which resolves to the
// pod of rank 0; in that pod itself PyTorchJob sets it to localhost.
func seenKubeflow(env Env) []string {
	if set := setOf(env, "PET_NODE_RANK", "PET_NNODES"); len(set) > 0 {
		return set
	}
	if podRank(env) {
		return append(setOf(env, "RANK", "WORLD_SIZE"), "KUBERNETES_SERVICE_HOST")
	}
	return nil
}

// podRank reports that RANK is that of a pod: on Kubernetes, and nobody has counted processes inside the pod.
func podRank(env Env) bool {
	if env.has("TORCHELASTIC_RUN_ID") || env.has("LOCAL_RANK") {
		return false
	}
	return env.has("PET_NODE_RANK") || env.has("KUBERNETES_SERVICE_HOST") && env.first("RANK", "WORLD_SIZE") != ""
}

func readKubeflow(r *reader) {
	if r.env.first("PET_NODE_RANK", "PET_NNODES") != "" {
		r.must("rank", "PET_NODE_RANK")
		readNodeRange(r)
		r.p.PerNode = r.env["PET_NPROC_PER_NODE"]
	} else {
		r.must("rank", "RANK")
		r.must("size", "WORLD_SIZE")
	}
	r.p.Master = r.env[r.env.first("PET_MASTER_ADDR", "MASTER_ADDR")]
	onePerNode(r, "a pod is a node")
	r.p.follow("nodes", r.p.Size, "a pod is a node")
}

// readNodeRange reads PET_NNODES, which may be a range MIN:MAX of torchrun; only one with both ends equal is a size.
func readNodeRange(r *reader) {
	low, high, isRange := strings.Cut(r.env["PET_NNODES"], ":")
	if !isRange || r.err != nil {
		r.must("size", "PET_NNODES")
		return
	}
	if low != high {
		r.err = &Error{Text: "cannot tell the size: PET_NNODES=" + r.env["PET_NNODES"] + " is a range, and the number of nodes is fixed here"}
		return
	}
	n, err := number("PET_NNODES", low)
	if r.err = err; err == nil {
		r.p.found("size", n, "PET_NNODES="+r.env["PET_NNODES"])
	}
}

// onePerNode says that each task is alone on its node.
func onePerNode(r *reader, why string) {
	if r.err == nil {
		r.p.follow("local rank", 0, why)
		r.p.follow("local size", 1, why)
		r.p.follow("node rank", r.p.Rank, why)
	}
}
