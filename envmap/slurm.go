package envmap

import (
	"errors"
	"strconv"
	"strings"
)

// A task of a Slurm step (measured: 22.05, 24.11) has SLURM_PROCID and SLURM_STEP_ID. The body of a
// batch script has SLURM_PROCID=0 and SLURM_NTASKS=4, but no step: it is not rank 0 of 4. Inside a
// step SLURM_NTASKS and SLURM_NNODES are those of the step; in a heterogeneous step they are those
// of all components.
func matchSlurm(env Env) []string {
	step := slurmStep(env)
	if step == "" || !env.has("SLURM_PROCID") {
		return nil
	}
	return []string{"SLURM_PROCID", step}
}

// slurmStep returns the variable that names the step, "" outside of a step. The excluded numbers
// are those that Slurm reserves for the interactive step of salloc and for the batch step, which
// run a shell and no task (documented: slurm.h).
func slurmStep(env Env) string {
	name := env.first("SLURM_STEP_ID", "SLURM_STEPID")
	switch env[name] {
	case "4294967290", "4294967291":
		return ""
	}
	return name
}

func readSlurm(r *reader) {
	r.require("rank", "SLURM_PROCID")
	if r.err == nil && slurmStep(r.env) == "" {
		r.err = &Error{
			Text: "cannot determine the placement: " + r.env.shown("SLURM_PROCID") +
				" is set, but SLURM_STEP_ID is not: this is the body of a batch script, not a task",
			Hint: "start it with srun",
		}
	}
	// In a heterogeneous step (measured: within one job and over two) rank, node rank and these
	// sizes count all components.
	r.require("size", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS")
	r.take("nodes", "SLURM_STEP_NUM_NODES", "SLURM_NNODES")
	r.take("local rank", "SLURM_LOCALID")
	r.take("node rank", "SLURM_NODEID")
	readSlurmLocalSize(r)
	checkSlurmStep(r)
	forgetArbitraryNodeRank(r)
	readSlurmJob(r)
	if r.p.Launcher == SlurmPMI {
		r.requireEqual("rank", "PMI_RANK")
	} else {
		r.ignore("PMI variables of another step", "PMI_JOBID", "PMI_RANK", "PMI_SIZE")
	}
}

// readSlurmLocalSize takes this node's entry of SLURM_STEP_TASKS_PER_NODE ("2,1(x2)"), or else the
// number of the node's task numbers in SLURM_GTIDS.
func readSlurmLocalSize(r *reader) {
	if r.err != nil {
		return
	}
	list := r.env.first("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
	if list != "" && r.p.NodeRank != Unknown {
		n, err := tasksOnNode(r.env[list], r.p.NodeRank)
		if err != nil {
			text := "cannot read " + r.env.shown(list) + ": " + err.Error()
			r.err = &Error{Text: text, Hint: hintLauncher}
			return
		}
		if n != Unknown {
			r.p.set("local size", n, r.env.shown(list)+", entry "+r.env.shown("SLURM_NODEID"))
			return
		}
	}
	if ids := r.env["SLURM_GTIDS"]; ids != "" {
		r.p.set("local size", countFields(ids), "SLURM_GTIDS="+ids)
	}
}

// checkSlurmStep detects the step of another job: sbatch passes on the whole environment, and a
// batch script that is submitted from inside a step (an interactive one, for example) has that
// step's SLURM_STEP_* beside its own numbers (measured: 22.05). In its own step the two are equal.
func checkSlurmStep(r *reader) {
	if r.err != nil {
		return
	}
	r.requireEqual("size", "SLURM_NTASKS")
	r.requireEqual("nodes", "SLURM_NNODES")
	ids := r.env["SLURM_GTIDS"]
	if r.err == nil && ids != "" && countFields(ids) != r.p.LocalSize {
		r.err = &Error{Text: "cannot determine the placement: " +
			r.env.shown("SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID") + ", but SLURM_GTIDS=" + ids}
	}
	if r.err != nil {
		r.err.Hint = "a batch script submitted from inside a step inherits its SLURM_STEP_ID: " +
			"start the tasks with srun, or use --launcher none"
	}
}

// forgetArbitraryNodeRank drops the node rank if ranks are placed in any order (-m arbitrary, or a
// host file), because NODE_RANK 0 is that of rank 0's node. Slurm numbers the nodes by their names.
func forgetArbitraryNodeRank(r *reader) {
	if r.err == nil && strings.HasPrefix(r.env["SLURM_DISTRIBUTION"], "arbitrary") {
		r.p.NodeRank = Unknown
		r.setUnknown("node rank", r.env.shown("SLURM_DISTRIBUTION", "SLURM_NODEID")+
			": not in the order of the ranks; rdzv exec sets NODE_RANK")
	}
}

// readSlurmJob joins cluster, job and step: several steps of a job may run at the same time, and
// several clusters may share home directories.
func readSlurmJob(r *reader) {
	job, step := r.env.first("SLURM_JOB_ID", "SLURM_JOBID"), slurmStep(r.env)
	if job == "" || step == "" {
		return
	}
	id := r.env[job] + "." + r.env[step]
	if cluster := r.env["SLURM_CLUSTER_NAME"]; cluster != "" {
		id = cluster + "." + id
	}
	r.setJob(id, r.env.shown("SLURM_CLUSTER_NAME", job, step))
}

// srun --mpi=pmi2 adds PMI_RANK, PMI_SIZE, PMI_FD and PMI_JOBID=<job>.<step>. They look like
// Hydra's, but the plugin accepts PMI-1 only once per task and hangs the job at the second use.
func matchSlurmPMI(env Env) []string {
	matched := matchSlurm(env)
	size := env.first("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
	job := env[env.first("SLURM_JOB_ID", "SLURM_JOBID")] + "." + env[slurmStep(env)]
	if matched == nil || env.has("MPI_LOCALRANKID") || // set by Hydra
		env["PMI_JOBID"] != job || env["PMI_SIZE"] != env[size] {
		return nil
	}
	return append(matched, "PMI_JOBID")
}

// explainBatchScript explains why Slurm's variables outside of a step are ignored.
func explainBatchScript(r *reader) {
	if !r.env.has("SLURM_PROCID") || slurmStep(r.env) != "" {
		return
	}
	why := "this is the body of a batch script: no SLURM_STEP_ID"
	if name := r.env.first("SLURM_STEP_ID", "SLURM_STEPID"); name != "" {
		why = "this is the shell of an allocation: " + r.env.shown(name) + " has no tasks"
	}
	r.ignore(why, "SLURM_PROCID", "SLURM_NTASKS")
	if r.p.Launcher == None {
		r.p.Advice = append(r.p.Advice,
			"this is a Slurm job, but srun did not start this process: start the tasks with srun")
	}
}

// tasksOnNode returns entry node of a list such as "2,1(x2)": two tasks on node 0, one each on
// nodes 1 and 2. It returns Unknown if the list is shorter.
func tasksOnNode(list string, node int) (int, error) {
	nodes := 0
	for entry := range strings.SplitSeq(list, ",") {
		count, repeat, repeated := strings.Cut(entry, "(x")
		times := 1
		if repeated {
			n, err := strconv.Atoi(strings.TrimSuffix(repeat, ")"))
			if !strings.HasSuffix(repeat, ")") || err != nil || n < 1 || n > MaxTasks {
				return Unknown, errors.New("invalid repetition in " + strconv.Quote(entry))
			}
			times = n
		}
		tasks, err := strconv.Atoi(count)
		if err != nil || tasks < 0 || tasks > MaxTasks {
			return Unknown, errors.New("invalid number of tasks in " + strconv.Quote(entry))
		}
		if nodes += times; node < nodes {
			return tasks, nil
		}
	}
	return Unknown, nil
}

// countFields counts the comma-separated fields of a non-empty list.
func countFields(list string) int { return strings.Count(list, ",") + 1 }
