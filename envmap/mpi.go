package envmap

// These launchers could not be run: their variables are documented, not measured.

// mpirun_rsh and mpiexec of MVAPICH2 set MV2_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
// (documented: Hugging Face accelerate reads these names); its Hydra also sets PMI_*.
func readMVAPICH2(r *reader) { r.takeWorld("MV2_COMM_WORLD_") }

// HPE Cray PALS (mpiexec on PBS systems) also sets the variables of its own PMI (documented: the
// cray-pals plugin of Flux, ezpz). Only PMI_SIZE holds the size.
func readPALS(r *reader) {
	r.require("rank", "PALS_RANKID")
	r.require("size", "PALS_SIZE", "PMI_SIZE")
	r.take("local rank", "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK")
	r.take("local size", "PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE")
	r.take("node rank", "PALS_NODEID")
	r.requireEqual("rank", "PMI_RANK")
	r.setJob(r.env["PALS_APID"], r.env.shown("PALS_APID"))
}

// Flux also sets PMI_* for its own PMI-1 (documented: flux-environment(7)). A batch script of Flux
// has FLUX_JOB_SIZE but no task variables.
func matchFlux(env Env) []string {
	if !env.has("FLUX_TASK_RANK") {
		return nil
	}
	return env.setOf("FLUX_TASK_RANK", "FLUX_JOB_SIZE")
}

func readFlux(r *reader) {
	r.require("rank", "FLUX_TASK_RANK")
	r.require("size", "FLUX_JOB_SIZE")
	r.take("local rank", "FLUX_TASK_LOCAL_ID")
	r.take("nodes", "FLUX_JOB_NNODES")
	r.requireEqual("rank", "PMI_RANK")
	r.requireEqual("size", "PMI_SIZE")
	r.setJob(r.env["FLUX_JOB_ID"], r.env.shown("FLUX_JOB_ID"))
}

// jsrun of IBM Spectrum LSF sets JSM_NAMESPACE_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE} (documented:
// Lightning's LSF environment).
func readJSM(r *reader) {
	r.takeWorld("JSM_NAMESPACE_")
	r.requireEqual("rank", "OMPI_COMM_WORLD_RANK")
	id := r.env["LSB_JOBID"]
	if step := r.env["JSM_NAMESPACE_ID"]; id != "" && step != "" {
		id += "." + step
	}
	r.setJob(id, r.env.shown("LSB_JOBID", "JSM_NAMESPACE_ID"))
}
