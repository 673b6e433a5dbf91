package envmap

// mpirun_rsh and mpiexec of MVAPICH2 set MV2_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
// (documented: Hugging Face accelerate reads these names); its Hydra also sets PMI_*.
func matchMVAPICH2(env Env) []string {
	return env.setOf("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE")
}

func readMVAPICH2(r *reader) {
	r.require("rank", "MV2_COMM_WORLD_RANK")
	r.require("size", "MV2_COMM_WORLD_SIZE")
	r.take("local rank", "MV2_COMM_WORLD_LOCAL_RANK")
	r.take("local size", "MV2_COMM_WORLD_LOCAL_SIZE")
}
