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
	r.must("rank", "RANK")
	r.must("size", "WORLD_SIZE")
	r.take("local rank", "LOCAL_RANK")
	r.take("local size", "LOCAL_WORLD_SIZE")
	r.take("node rank", "GROUP_RANK")
	r.take("nodes", "GROUP_WORLD_SIZE")
	r.p.Master = r.env["MASTER_ADDR"]
	r.job(r.env["TORCHELASTIC_RUN_ID"], "TORCHELASTIC_RUN_ID="+r.env["TORCHELASTIC_RUN_ID"])
}
