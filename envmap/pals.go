package envmap

// HPE Cray PALS (mpiexec on PBS systems) sets PALS_RANKID, PALS_NODEID, PALS_LOCAL_RANKID and PALS_APID, and the PMI_
// variables of its own PMI (documented: the cray-pals plugin of Flux, ezpz). The size stands in PMI_SIZE alone.
func seenPALS(env Env) []string {
	return setOf(env, "PALS_RANKID", "PALS_APID")
}

func readPALS(r *reader) {
	r.must("rank", "PALS_RANKID")
	r.must("size", "PALS_SIZE", "PMI_SIZE")
	r.take("local rank", "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK")
	r.take("local size", "PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE")
	r.take("node rank", "PALS_NODEID")
	r.same(r.p.Rank, "PALS_RANKID", "PMI_RANK")
	r.job(r.env["PALS_APID"], "PALS_APID="+r.env["PALS_APID"])
}
