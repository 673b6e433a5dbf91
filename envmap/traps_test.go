package envmap

import (
	"maps"
	"strings"
	"testing"
)

// The traps of dev/launchers.md that concern the environment, one test each. Uneven and
// interleaved nodes, MPMD runs and one task per node are rows of TestRecordedRanks.

func TestTrapMpirunInsideSbatch(t *testing.T) {
	for _, name := range []string{"openmpi4-insbatch", "openmpi5deb-insbatch"} {
		env := recorded(t, name, 3)
		if env["SLURM_PROCID"] != "0" || env["SLURM_STEP_ID"] == "" {
			t.Fatalf("%s does not reproduce the trap", name)
		}
		p := detected(t, env, "")
		if p.Rank != 3 || p.Size != 4 {
			t.Errorf("%s: wrong placement %s", name, numbersOf(p))
		}
		wantIgnored(t, p, "SLURM_PROCID=0", "runs inside slurm")
	}
}

func TestTrapBatchBody(t *testing.T) {
	for _, name := range []string{"slurm22-batchbody", "slurm2411-batchbody"} {
		env := recorded(t, name, 0)
		if env["SLURM_PROCID"] != "0" || env["SLURM_NTASKS"] == "" {
			t.Fatalf("%s does not reproduce the trap", name)
		}
		p := detected(t, env, "")
		wantPlacement(t, p, placed(None, Unknown, Unknown, Unknown, Unknown, Unknown, Unknown))
		wantIgnored(t, p, "SLURM_PROCID=0", "this is the body of a batch script: no SLURM_STEP_ID")
		if len(p.Advice) != 1 || !strings.Contains(p.Advice[0], "srun") {
			t.Errorf("advice %q, want one sentence about srun", p.Advice)
		}
		wantError(t, env, Slurm, "SLURM_PROCID=0", "SLURM_STEP_ID")
	}
}

// A batch script submitted from inside a step, for example an interactive one, inherits that step's
// SLURM_STEP_*.
func TestTrapBatchSubmittedFromAStep(t *testing.T) {
	for name, names := range map[string][]string{
		"slurm22-batchinstep1": {"SLURM_STEP_NUM_TASKS=2", "SLURM_NTASKS=1"},
		// a step of two tasks, a script for one
		"slurm22-batchinstep2": {"SLURM_STEP_NUM_NODES=1", "SLURM_NNODES=2"},
		// a step of one node, a script for two
	} {
		env := recorded(t, name, 0)
		wantError(t, env, "", names...)
		_, err := Detect(env, "")
		if e, ok := err.(*Error); !ok || !strings.Contains(e.Hint, "--launcher none") {
			t.Errorf("%s: no hint in %#v", name, err)
		}
		wantPlacement(t, detected(t, env, None),
			placed(None, Unknown, Unknown, Unknown, Unknown, Unknown, Unknown))
		maps.Copy(env, Env{"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1"})
		wantPlacement(t, detected(t, env, ""), placed(Hydra, 1, 4, 1, Unknown, Unknown, Unknown))
	}
	env := recorded(t, "slurm22-batchinstep1", 0)
	env["SLURM_NTASKS"] = "2" // inherited, because sbatch without -n does not set it
	wantError(t, env, "", "SLURM_STEP_TASKS_PER_NODE=2", "SLURM_GTIDS=0")
}

// On mpirun's own host the ranks have the variables of the batch script's body.
func TestTrapMpirunOnTheBatchHost(t *testing.T) {
	p := detected(t, recorded(t, "openmpi4-insbatch", 0), "")
	if p.Rank != 0 || p.Size != 4 || p.Launcher != OpenMPI4 {
		t.Errorf("wrong placement %s", numbersOf(p))
	}
	wantIgnored(t, p, "SLURM_PROCID=0", "body of a batch script")
}

// Open MPI 4's job id is a hash of 16 bits; two steps of a Slurm job may run at the same time; two
// clusters may have the same job number.
func TestTrapJobCollisions(t *testing.T) {
	env := recorded(t, "openmpi4-headrank", 0)
	other := maps.Clone(env)
	other["OMPI_MCA_orte_hnp_uri"] = "1987379200.0;tcp://10.77.0.99:40001"
	wantJobsDiffer(t, env, other)

	env = recorded(t, "slurm22-srun", 0)
	if p := detected(t, env, ""); p.Job != "testbed.2.0" {
		t.Errorf("job %q", p.Job)
	}
	other = maps.Clone(env)
	other["SLURM_STEP_ID"], other["SLURM_STEPID"] = "1", "1"
	wantJobsDiffer(t, env, other)
	other = maps.Clone(env)
	other["SLURM_CLUSTER_NAME"] = "elsewhere"
	wantJobsDiffer(t, env, other)
}

// Each task sees one device, with index 0, although SLURM_GPUS_ON_NODE is 2 and LOCAL_RANK is 1.
func TestTrapGPUsPerTask(t *testing.T) {
	for _, name := range []string{"slurm22-gpus-per-task", "slurm2411-gpus-per-task"} {
		env := recorded(t, name, 1)
		if env["CUDA_VISIBLE_DEVICES"] != "1" || env["SLURM_GPUS_ON_NODE"] != "2" {
			t.Fatalf("%s does not reproduce the trap", name)
		}
		c := changes(t, env, Identity{Rank: 1, WorldSize: 4, LocalRank: 1, LocalWorldSize: 2,
			Nodes: 2, Visible: VisibleDevices(env, nil)}, TorchOptions{})
		if got := c.value("RDZV_DEVICE_INDEX"); got != "0" {
			t.Errorf("%s: device index %s", name, got)
		}
		if len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "--device local-rank") {
			t.Errorf("%s: notes %q", name, c.Notes)
		}
	}
}

// Inside sbatch Hydra's ranks have PMI_* and SLURM_*, as tasks of srun --mpi=pmi2 do. Only Slurm
// sets PMI_JOBID, and only Hydra sets MPI_LOCALRANKID.
func TestTrapHydraInsideSbatch(t *testing.T) {
	for rank := range 4 {
		p := detected(t, recorded(t, "mpich4-insbatch", rank), "")
		if p.Launcher != Hydra || p.Rank != rank || p.Size != 4 {
			t.Errorf("rank %d: wrong placement %s", rank, numbersOf(p))
		}
	}
	// mpiexec with one rank per node, where PMI_SIZE is the number of Slurm's tasks too.
	env := recorded(t, "mpich4-insbatch", 2)
	env["PMI_SIZE"], env["PMI_RANK"] = "2", "1"
	env["PMI_JOBID"] = env["SLURM_JOB_ID"] + "." + env["SLURM_STEP_ID"]
	if p := detected(t, env, ""); p.Launcher != Hydra {
		t.Errorf("launcher %s selected", p.Launcher)
	}
	if p := detected(t, recorded(t, "slurm22-pmi2", 1), ""); p.Launcher != SlurmPMI {
		t.Errorf("launcher %s selected", p.Launcher)
	}
}

// A step without PMI inside a step with PMI inherits the outer step's PMI_*.
func TestTrapPMIOfAnotherStep(t *testing.T) {
	env := recorded(t, "slurm22-pmi2", 1)
	env["SLURM_STEP_ID"], env["SLURM_STEPID"], env["SLURM_PROCID"] = "1", "1", "3"
	p := detected(t, env, "")
	if p.Launcher != Slurm || p.Rank != 3 {
		t.Errorf("wrong placement %s", numbersOf(p))
	}
	wantIgnored(t, p, "PMI_RANK=1", "PMI variables of another step")
}

// Slurm 24 sets OMPI_*, PRTE_* and HYDRA_* in every process, including the batch script.
func TestTrapSlurm24SetsVariablesOfOtherLaunchers(t *testing.T) {
	env := recorded(t, "slurm2411-srun", 2)
	for _, name := range []string{"OMPI_MCA_plm_slurm_args", "PRTE_MCA_plm_slurm_args", "HYDRA_BOOTSTRAP"} {
		if !env.has(name) {
			t.Fatalf("the recording has no %s", name)
		}
	}
	if p := detected(t, env, ""); p.Launcher != Slurm || p.Rank != 2 {
		t.Errorf("wrong placement %s", numbersOf(p))
	}
	if p := detected(t, recorded(t, "slurm2411-pmix", 2), ""); p.Launcher != Slurm || p.Rank != 2 {
		t.Errorf("wrong placement %s", numbersOf(p))
	}
}

func wantJobsDiffer(t *testing.T, a, b Env) {
	t.Helper()
	if p, q := detected(t, a, ""), detected(t, b, ""); p.Job == q.Job || p.Job == "" {
		t.Errorf("jobs %q and %q, want two different ones", p.Job, q.Job)
	}
}

func wantIgnored(t *testing.T, p Placement, value, note string) {
	t.Helper()
	for _, row := range p.Explain() {
		if row.What == "ignored" && strings.Contains(row.Value, value) &&
			strings.Contains(row.Note, note) {
			return
		}
	}
	t.Errorf("no row says that %s is ignored because %q: %+v", value, note, p.Explain())
}

// wantError checks that Detect fails with an error that contains all names.
func wantError(t *testing.T, env Env, choice Launcher, names ...string) {
	t.Helper()
	p, err := Detect(env, choice)
	if err == nil {
		t.Fatalf("no error, but placement %s", numbersOf(p))
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not contain %s", err, name)
		}
	}
}
