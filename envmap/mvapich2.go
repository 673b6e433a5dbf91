package envmap

// MVAPICH2's mpirun_rsh and mpiexec set MV2_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE} (documented: the names as
// Hugging Face accelerate reads them); its Hydra sets PMI_* beside them.
func seenMVAPICH2(env Env) []string {
	return setOf(env, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE")
}

func readMVAPICH2(r *reader) {
	r.must("rank", "MV2_COMM_WORLD_RANK")
	r.must("size", "MV2_COMM_WORLD_SIZE")
	r.take("local rank", "MV2_COMM_WORLD_LOCAL_RANK")
	r.take("local size", "MV2_COMM_WORLD_LOCAL_SIZE")
}
