package envmap

// torchrun gives its workers RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE and
// TORCHELASTIC_RUN_ID (documented: torch/distributed/run.py). RANK and WORLD_SIZE set by hand are read the same way; what
// of the rest is missing stays unknown.
func seenTorchrun(env Env) []string {
	if podRank(env) {
		return nil
	}
	return append(setOf(env, "RANK", "WORLD_SIZE"), setOf(env, "TORCHELASTIC_RUN_ID")...)
}

func readTorchrun(r *reader) {
	r.must("rank", &r.p.Rank, "RANK")
	r.must("size", &r.p.Size, "WORLD_SIZE")
	r.take("local rank", &r.p.LocalRank, "LOCAL_RANK")
	r.take("local size", &r.p.LocalSize, "LOCAL_WORLD_SIZE")
	r.take("node rank", &r.p.NodeRank, "GROUP_RANK")
	r.take("nodes", &r.p.Nodes, "GROUP_WORLD_SIZE")
	r.p.Master = r.env["MASTER_ADDR"]
	r.job(r.env["TORCHELASTIC_RUN_ID"], "TORCHELASTIC_RUN_ID="+r.env["TORCHELASTIC_RUN_ID"])
}
