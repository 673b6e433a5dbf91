package envmap

// Inside reports that this process runs inside a worker of rdzv (RDZV_RUN_ID is set), and which one it is. There the
// variables that rdzv set count alone: the launcher's may be gone, or those of another task.
func Inside(env Env) (Placement, bool, error) {
	if !env.has("RDZV_RUN_ID") {
		return Placement{}, false, nil
	}
	r := newReader(env, recogniser{name: Launcher(env["RDZV_DETECTED"]), seen: func(Env) []string { return []string{"RDZV_RUN_ID"} }})
	r.p.rows = append(r.p.rows, Explained{What: "launcher", Value: string(r.p.Launcher), From: env.shown("RDZV_RUN_ID", "RDZV_DETECTED"), Note: "a worker of rdzv"})
	r.must("rank", "RANK")
	r.must("size", "WORLD_SIZE")
	r.take("local rank", "LOCAL_RANK")
	r.take("local size", "LOCAL_WORLD_SIZE")
	r.take("node rank", "NODE_RANK", "GROUP_RANK")
	r.take("nodes", "GROUP_WORLD_SIZE")
	r.job(env["RDZV_RUN_ID"], "RDZV_RUN_ID="+env["RDZV_RUN_ID"])
	if r.err == nil {
		r.err = check(r.p)
	}
	if r.err != nil {
		return Placement{}, true, r.err
	}
	return r.p, true, nil
}
