package envmap

import (
	"errors"
	"strings"
	"testing"
)

func TestContradictions(t *testing.T) {
	const ompi, hydra, slurm = "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 ",
		"PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 ",
		"SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 "
	for _, row := range []struct{ name, env, names string }{
		{
			"rank equals size", "OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=4",
			"OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=4",
		},
		{
			"local rank equals local size",
			ompi + "OMPI_COMM_WORLD_LOCAL_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=2",
			"OMPI_COMM_WORLD_LOCAL_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=2",
		},
		{
			"local size above size", ompi + "OMPI_COMM_WORLD_LOCAL_SIZE=5",
			"OMPI_COMM_WORLD_LOCAL_SIZE=5 OMPI_COMM_WORLD_SIZE=4",
		},
		{
			"local rank above size", ompi + "OMPI_COMM_WORLD_LOCAL_RANK=9",
			"OMPI_COMM_WORLD_LOCAL_RANK=9 OMPI_COMM_WORLD_SIZE=4",
		},
		{
			"more nodes than ranks", ompi + "OMPI_MCA_ess_base_jobid=1 OMPI_MCA_orte_num_nodes=5",
			"OMPI_MCA_orte_num_nodes=5 OMPI_COMM_WORLD_SIZE=4",
		},
		{"node rank equals nodes", slurm + "SLURM_NODEID=2 SLURM_STEP_NUM_NODES=2",
			"SLURM_NODEID=2 SLURM_STEP_NUM_NODES=2"},
		{"no ranks", "PMI_RANK=0 PMI_SIZE=0", "PMI_SIZE=0"},
		{"no nodes", ompi + "OMPI_MCA_ess_base_jobid=1 OMPI_MCA_orte_num_nodes=0",
			"OMPI_MCA_orte_num_nodes=0"},

		{"rank without size", "OMPI_COMM_WORLD_RANK=1",
			"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE"},
		{"size without rank", "OMPI_COMM_WORLD_SIZE=2",
			"OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK"},
		{"hydra: size without rank", "PMI_SIZE=2", "PMI_SIZE=2 PMI_RANK"},
		{"mvapich2: rank without size", "MV2_COMM_WORLD_RANK=0",
			"MV2_COMM_WORLD_RANK=0 MV2_COMM_WORLD_SIZE"},
		{"slurm: no size", "SLURM_PROCID=0 SLURM_STEP_ID=0", "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS"},
		{"jsrun: rank without size", "JSM_NAMESPACE_RANK=0",
			"JSM_NAMESPACE_RANK=0 JSM_NAMESPACE_SIZE"},
		{"pals: no size", "PALS_RANKID=0", "PALS_RANKID=0 PALS_SIZE"},
		{"kubeflow: nodes without node rank", "PET_NNODES=2", "PET_NNODES=2 PET_NODE_RANK"},
		{"kubeflow: range of nodes", "PET_NODE_RANK=0 PET_NNODES=1:4", "PET_NNODES=1:4"},
		{"kubeflow: not a range", "PET_NODE_RANK=0 PET_NNODES=1:x", `PET_NNODES="x"`},

		{"not a number", "OMPI_COMM_WORLD_RANK=x OMPI_COMM_WORLD_SIZE=4", `OMPI_COMM_WORLD_RANK="x"`},
		{"fraction", "PMI_RANK=1.5 PMI_SIZE=4", `PMI_RANK="1.5"`},
		{"negative", "PMI_RANK=-1 PMI_SIZE=4", "PMI_RANK=-1"},
		{"too large", "PMI_RANK=0 PMI_SIZE=99999999", "PMI_SIZE=99999999"},
		{"larger than an int", "PMI_RANK=0 PMI_SIZE=99999999999999999999999", `PMI_SIZE="99999999999999999999999"`},
		{"malformed tasks per node", slurm + "SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2(x",
			"SLURM_STEP_TASKS_PER_NODE=2(x"},

		{"rank of PMIx differs", ompi + "PMIX_RANK=3", "OMPI_COMM_WORLD_RANK=0 PMIX_RANK=3"},
		{
			"mpirun and mpiexec", ompi + "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1",
			"OMPI_COMM_WORLD_RANK=0 PMI_RANK=1 openmpi4 hydra",
		},
		{
			"mpirun and torchrun", ompi + "TORCHELASTIC_RUN_ID=x LOCAL_RANK=1 RANK=5 WORLD_SIZE=8",
			"OMPI_COMM_WORLD_RANK=0 RANK=5 WORLD_SIZE=8 openmpi4 torchrun",
		},
		{
			"srun and torchrun", slurm + "TORCHELASTIC_RUN_ID=x LOCAL_RANK=1 RANK=5 WORLD_SIZE=8",
			"SLURM_PROCID=0 RANK=5 WORLD_SIZE=8",
		},
		{"mpiexec and torchrun", hydra + "TORCHELASTIC_RUN_ID=x LOCAL_RANK=1 RANK=5 WORLD_SIZE=8",
			"PMI_RANK=0 RANK=5"},
		{"flux and its PMI", "FLUX_TASK_RANK=1 FLUX_JOB_SIZE=4 PMI_RANK=2",
			"FLUX_TASK_RANK=1 PMI_RANK=2"},
		{"slurm and its PMI", slurm + "SLURM_JOB_ID=1 PMI_JOBID=1.0 PMI_SIZE=4 PMI_RANK=3",
			"SLURM_PROCID=0 PMI_RANK=3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			wantError(t, ParseEnv(strings.Fields(row.env)), "", strings.Fields(row.names)...)
		})
	}
}

// With --launcher only the variables of that launcher count; with none, no variables do.
func TestChoice(t *testing.T) {
	both := ParseEnv(strings.Fields("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 " +
		"TORCHELASTIC_RUN_ID=x RANK=5 WORLD_SIZE=8"))
	for choice, want := range map[Launcher]Placement{
		"openmpi":  placed(OpenMPI4, 0, 4, Unknown, Unknown, Unknown, Unknown),
		"openmpi4": placed(OpenMPI4, 0, 4, Unknown, Unknown, Unknown, Unknown),
		Torchrun:   placed(Torchrun, 5, 8, Unknown, Unknown, Unknown, Unknown),
		UserSet:    placed(UserSet, 5, 8, Unknown, Unknown, Unknown, Unknown),
		None:       placed(None, Unknown, Unknown, Unknown, Unknown, Unknown, Unknown),
	} {
		t.Run(string(choice), func(t *testing.T) {
			wantPlacement(t, detected(t, both, choice), want)
		})
	}
	p := detected(t, both, None)
	wantIgnored(t, p, "OMPI_COMM_WORLD_RANK=0", "not selected by --launcher none")
	wantIgnored(t, p, "RANK=5", "not selected by --launcher none")
	if p := detected(t, recorded(t, "openmpi5-headrank", 1), "openmpi"); p.Launcher != OpenMPI5 {
		t.Errorf("choice openmpi selected %s", p.Launcher)
	}
	if p := detected(t, recorded(t, "mpich4-headrank", 1), "mpich"); p.Launcher != Hydra {
		t.Errorf("choice mpich selected %s", p.Launcher)
	}
	if p := detected(t, recorded(t, "openmpi4-insbatch", 3), Slurm); p.Launcher != Slurm ||
		p.Rank != 0 {
		t.Errorf("choice slurm: %s", numbersOf(p))
	}
	wantError(t, Env{}, Hydra, "PMI_RANK")
	wantError(t, Env{}, "lam", `"lam"`, "openmpi", "slurm")
}

// Every name that the help lists is accepted, and fails without the variables of its launcher.
func TestEveryChoiceIsAccepted(t *testing.T) {
	for _, choice := range Choices() {
		_, err := Detect(Env{}, Launcher(choice))
		if choice == "none" && err != nil || choice != "none" &&
			(err == nil || !strings.Contains(err.Error(), "is not set")) {
			t.Errorf("Detect with choice %s: %v", choice, err)
		}
	}
}

// Two launchers with the same rank and size do not contradict one another.
func TestAgreeingLaunchers(t *testing.T) {
	env := ParseEnv(strings.Fields("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 " +
		"TORCHELASTIC_RUN_ID=x LOCAL_RANK=1 RANK=1 WORLD_SIZE=4"))
	wantPlacement(t, detected(t, env, ""), placed(OpenMPI4, 1, 4, Unknown, Unknown, Unknown,
		Unknown))
	env = ParseEnv(strings.Fields("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 RANK=7"))
	p := detected(t, env, "")
	wantIgnored(t, p, "RANK=7", "rdzv exec replaces them")
	env = ParseEnv(strings.Fields("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 " +
		"FLUX_TASK_RANK=0 FLUX_JOB_SIZE=2 PMI_RANK=0 PMI_SIZE=2"))
	p = detected(t, env, "")
	wantIgnored(t, p, "FLUX_TASK_RANK=0", "runs inside flux")
}

// A variable number of pods is what --nodes MIN:MAX is for, also if Kubeflow gives no ranks.
func TestKubeflowRangeHasAHint(t *testing.T) {
	for env, want := range map[string]string{
		"PET_NNODES=1:2": "rdzv exec --launcher none " +
			"--nodes 1:2 --store HOST",
		"PET_NNODES=1:2 PET_NODE_RANK=0 PET_RDZV_ENDPOINT=job-worker-0:23456": "rdzv exec " +
			"--launcher none --nodes 1:2 --store job-worker-0",
	} {
		_, err := Detect(ParseEnv(strings.Fields(env)), "")
		var e *Error
		if !errors.As(err, &e) || !strings.HasSuffix(e.Hint, want) {
			t.Errorf("%s: %+v, want a hint that ends with %q", env, err, want)
		}
	}
}

func TestErrorsHaveAHint(t *testing.T) {
	_, err := Detect(Env{"PMI_RANK": "x", "PMI_SIZE": "1"}, "")
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Hint, "--launcher") {
		t.Errorf("error %#v, want an *Error with a hint", err)
	}
}

func TestEmptyVariableIsUnset(t *testing.T) {
	p := detected(t, ParseEnv([]string{"RANK=", "WORLD_SIZE=", "PMI_RANK=1", "PMI_SIZE=2",
		"PMI_SIZE=4", "=x", "junk"}), "")
	wantPlacement(t, p, placed(Hydra, 1, 4, Unknown, Unknown, Unknown, Unknown))
}
