package envmap

import "errors"

// A task of a Slurm step (measured: 22.05, 24.11) has SLURM_PROCID and SLURM_STEP_ID. The body of a batch script has
// SLURM_PROCID=0 and SLURM_NTASKS=4, but no step: it is not rank 0 of 4. Inside a step SLURM_NTASKS and SLURM_NNODES
// are those of the step, and in a heterogeneous one those of all components.
func seenSlurm(env Env) []string {
	step := slurmStep(env)
	if step == "" || !env.has("SLURM_PROCID") {
		return nil
	}
	return []string{"SLURM_PROCID", step}
}

// slurmStep returns the variable that names the step, "" outside of a step. The numbers are those that Slurm reserves for
// the interactive step of salloc and for the batch step, where a shell runs and no task (documented: slurm.h).
func slurmStep(env Env) string {
	name := env.first("SLURM_STEP_ID", "SLURM_STEPID")
	switch env[name] {
	case "4294967290", "4294967291":
		return ""
	}
	return name
}

func readSlurm(r *reader) {
	readSlurmStep(r)
	r.ignore("PMI of another step", "PMI_JOBID", "PMI_RANK", "PMI_SIZE")
}

func readSlurmStep(r *reader) {
	r.must("rank", "SLURM_PROCID")
	if r.err == nil && slurmStep(r.env) == "" {
		r.err = &Error{Text: "cannot tell the placement: SLURM_PROCID=" + r.env["SLURM_PROCID"] + " is set, but SLURM_STEP_ID is not: this is the body of a batch script, not a task",
			Hint: "start it with srun"}
	}
	readSlurmSizes(r)
	r.take("local rank", "SLURM_LOCALID")
	r.take("node rank", "SLURM_NODEID")
	readSlurmLocalSize(r)
	checkSlurmStep(r)
	readSlurmJob(r)
}

// checkSlurmStep finds the step of another job: sbatch hands the whole environment on, and a batch script that was submitted
// from inside a step (an interactive one, say) has that one's SLURM_STEP_* beside its own numbers (measured, 22.05). In a
// step of its own the two are equal.
func checkSlurmStep(r *reader) {
	if r.err != nil {
		return
	}
	r.same(r.p.Size, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
	r.same(r.p.Nodes, "SLURM_STEP_NUM_NODES", "SLURM_NNODES")
	if ids := r.env["SLURM_GTIDS"]; r.err == nil && ids != "" && r.p.LocalSize != Unknown && countFields(ids) != r.p.LocalSize {
		r.err = &Error{Text: "cannot tell the placement: " + r.env.shown("SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID") + ", but SLURM_GTIDS=" + ids}
	}
	var e *Error
	if errors.As(r.err, &e) {
		e.Hint = "a batch script that was submitted from inside a step has that step's SLURM_STEP_ID: start the tasks with srun, or use --launcher none"
	}
}

// readSlurmSizes takes the step's sizes. In a heterogeneous step (measured: within one job and over two) they are those of
// all components, as are rank and node rank.
func readSlurmSizes(r *reader) {
	r.must("size", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS")
	r.take("nodes", "SLURM_STEP_NUM_NODES", "SLURM_NNODES")
}

// readSlurmLocalSize takes this node's entry of SLURM_STEP_TASKS_PER_NODE ("2,1(x2)"), and where that does not help the
// number of the node's task numbers in SLURM_GTIDS.
func readSlurmLocalSize(r *reader) {
	if r.err != nil {
		return
	}
	if name := r.env.first("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"); name != "" && r.p.NodeRank != Unknown {
		n, err := tasksOnNode(r.env[name], r.p.NodeRank)
		if err != nil {
			r.err = &Error{Text: "cannot read " + name + "=" + r.env[name] + ": " + err.Error(), Hint: hintLauncher}
			return
		}
		if n != Unknown {
			r.p.found("local size", n, name+"="+r.env[name]+", entry SLURM_NODEID="+r.env["SLURM_NODEID"])
			return
		}
	}
	if ids := r.env["SLURM_GTIDS"]; ids != "" {
		r.p.found("local size", countFields(ids), "SLURM_GTIDS="+ids)
	}
}

// readSlurmJob joins cluster, job and step: several steps of a job may run at once, and several clusters share a home.
func readSlurmJob(r *reader) {
	job, step := r.env.first("SLURM_JOB_ID", "SLURM_JOBID"), slurmStep(r.env)
	if job == "" || step == "" {
		return
	}
	id := r.env[job] + "." + r.env[step]
	if cluster := r.env["SLURM_CLUSTER_NAME"]; cluster != "" {
		id = cluster + "." + id
	}
	r.job(id, r.env.shown("SLURM_CLUSTER_NAME", job, step))
}

// srun --mpi=pmi2 adds PMI_RANK, PMI_SIZE, PMI_FD and PMI_JOBID=<job>.<step>. They look like Hydra's, but the plugin
// takes PMI-1 only once per task and hangs the job at the second time.
func seenSlurmPMI(env Env) []string {
	seen := seenSlurm(env)
	size := env.first("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
	job := env[env.first("SLURM_JOB_ID", "SLURM_JOBID")] + "." + env[slurmStep(env)]
	if seen == nil || !slurmsPMI(env) || env["PMI_JOBID"] != job || env["PMI_SIZE"] != env[size] {
		return nil
	}
	return append(seen, "PMI_JOBID")
}

func readSlurmPMI(r *reader) {
	readSlurmStep(r)
	r.same(r.p.Rank, "SLURM_PROCID", "PMI_RANK")
}

// batchBody explains why Slurm's variables outside of a step do not count, the trap of every batch script.
func batchBody(r *reader) {
	if !r.env.has("SLURM_PROCID") || slurmStep(r.env) != "" {
		return
	}
	why := "this is the body of a batch script, no SLURM_STEP_ID"
	if name := r.env.first("SLURM_STEP_ID", "SLURM_STEPID"); name != "" {
		why = "this is the shell of an allocation, " + name + "=" + r.env[name] + " is no step with tasks"
	}
	r.ignore(why, "SLURM_PROCID", "SLURM_NTASKS")
	if r.p.Launcher == None {
		r.advise("this is a Slurm job outside of srun: start the tasks with srun")
	}
}
