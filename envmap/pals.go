package envmap

// HPE Cray PALS (mpiexec on PBS systems) sets PALS_RANKID, PALS_NODEID, PALS_LOCAL_RANKID and
// PALS_APID, and the PMI_ variables of its own PMI (documented: the cray-pals plugin of Flux,
// ezpz). Only PMI_SIZE holds the size.
func matchPALS(env Env) []string {
	return env.setOf("PALS_RANKID", "PALS_APID")
}

func readPALS(r *reader) {
	r.require("rank", "PALS_RANKID")
	r.require("size", "PALS_SIZE", "PMI_SIZE")
	r.take("local rank", "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK")
	r.take("local size", "PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE")
	r.take("node rank", "PALS_NODEID")
	r.requireEqual(r.p.Rank, "PALS_RANKID", "PMI_RANK")
	r.setJob(r.env["PALS_APID"], r.env.shown("PALS_APID"))
}
