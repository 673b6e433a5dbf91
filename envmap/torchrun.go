package envmap

// torchrun sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE and
// TORCHELASTIC_RUN_ID in its workers (documented: torch/distributed/run.py). RANK and WORLD_SIZE
// set by the user are read the same way; the other numbers then stay unknown.
func matchTorchrun(env Env) []string {
	if rankIsPod(env) {
		return nil
	}
	return append(env.setOf("RANK", "WORLD_SIZE"), env.setOf("TORCHELASTIC_RUN_ID")...)
}

func readTorchrun(r *reader) {
	r.require("rank", "RANK")
	r.require("size", "WORLD_SIZE")
	r.take("local rank", "LOCAL_RANK")
	r.take("local size", "LOCAL_WORLD_SIZE")
	r.take("node rank", "GROUP_RANK")
	r.take("nodes", "GROUP_WORLD_SIZE")
	r.p.Master = r.env["MASTER_ADDR"]
	r.setJob(r.env["TORCHELASTIC_RUN_ID"], r.env.shown("TORCHELASTIC_RUN_ID"))
}
