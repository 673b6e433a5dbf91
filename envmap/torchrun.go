package envmap

// torchrun sets all of these (documented: torch/distributed/run.py). RANK and WORLD_SIZE without
// the others may be anybody's, see readUserSet.
func matchTorchrun(env Env) []string {
	names := []string{"RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"}
	if set := env.setOf(names...); len(set) == len(names) {
		return set
	}
	return nil
}

func readTorchrun(r *reader) {
	readWorker(r, "GROUP_RANK")
	r.p.Master = r.env["MASTER_ADDR"]
	r.setJob(r.env["TORCHELASTIC_RUN_ID"], r.env.shown("TORCHELASTIC_RUN_ID"))
}

// readUserSet takes the numbers that AzureML, Volcano or a script of the user sets under torchrun's
// names (documented: Azure Machine Learning, distributed GPU training guide; Volcano, plugins of
// jobs). They do not identify a launcher, because they are also what is left set in a shell.
func readUserSet(r *reader) {
	r.hint = "set RANK, WORLD_SIZE and MASTER_ADDR in each process, or omit --launcher env"
	readWorker(r, "NODE_RANK", "GROUP_RANK")
	r.p.Master = r.env["MASTER_ADDR"]
}

// Inside reports whether this process runs in a worker of rdzv (RDZV_RUN_ID is set), and which
// worker that is. There only the variables that rdzv set count: the launcher's variables may have
// been removed, or belong to another task.
func Inside(env Env) (Placement, bool, error) {
	if !env.has("RDZV_RUN_ID") {
		return Placement{}, false, nil
	}
	r := newReader(env, Launcher(env["RDZV_DETECTED"]), []string{"RDZV_RUN_ID"})
	r.p.sources["launcher"] = Row{
		What: "launcher", Value: string(r.p.Launcher),
		From: env.shown("RDZV_RUN_ID", "RDZV_DETECTED"), Note: "a worker of rdzv",
	}
	readWorker(r, "NODE_RANK", "GROUP_RANK")
	r.setJob(env["RDZV_RUN_ID"], env.shown("RDZV_RUN_ID"))
	if r.err == nil {
		r.err = r.p.check()
	}
	if r.err != nil {
		return Placement{}, true, r.err
	}
	return r.p, true, nil
}

// readWorker takes the numbers from the variables that torchrun and rdzv set in a worker.
func readWorker(r *reader, nodeRank ...string) {
	r.require("rank", "RANK")
	r.require("size", "WORLD_SIZE")
	r.take("local rank", "LOCAL_RANK")
	r.take("local size", "LOCAL_WORLD_SIZE")
	r.take("node rank", nodeRank...)
	r.take("nodes", "GROUP_WORLD_SIZE")
}
