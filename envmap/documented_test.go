package envmap

import (
	"strings"
	"testing"
)

// Launchers that could not be run: the variables are taken from their documentation, which the
// comment on each launcher names; the values are invented.
func TestDocumentedLaunchers(t *testing.T) {
	for _, row := range []struct {
		name, env string
		want      Placement
		job       string
	}{
		{"mvapich2", "MV2_COMM_WORLD_RANK=3 MV2_COMM_WORLD_SIZE=4 MV2_COMM_WORLD_LOCAL_RANK=1 " +
			"MV2_COMM_WORLD_LOCAL_SIZE=2",
			placed(MVAPICH2, 3, 4, 1, 2, Unknown, Unknown), ""},
		{"mvapich2 with its Hydra",
			"MV2_COMM_WORLD_RANK=3 MV2_COMM_WORLD_SIZE=4 MV2_COMM_WORLD_LOCAL_RANK=1 " +
				"MV2_COMM_WORLD_LOCAL_SIZE=2 PMI_RANK=3 PMI_SIZE=4 PMI_FD=5 MPI_LOCALRANKID=1 " +
				"MPI_LOCALNRANKS=2",
			placed(MVAPICH2, 3, 4, 1, 2, Unknown, Unknown), ""},
		{"pals", "PALS_RANKID=5 PALS_NODEID=1 PALS_LOCAL_RANKID=1 PALS_LOCAL_SIZE=4 " +
			"PALS_APID=0b1c PMI_RANK=5 PMI_SIZE=8 PMI_LOCAL_RANK=1 PMI_LOCAL_SIZE=4 " +
			"PMI_CONTROL_PORT=20480 PMI_SHARED_SECRET=0",
			placed(PALS, 5, 8, 1, 4, 1, Unknown), "0b1c"},
		{"pals, few variables",
			"PALS_RANKID=5 PALS_NODEID=1 PALS_LOCAL_RANKID=1 PALS_APID=0b1c PMI_SIZE=8",
			placed(PALS, 5, 8, 1, Unknown, 1, Unknown), "0b1c"},
		{"flux", "FLUX_TASK_RANK=2 FLUX_JOB_SIZE=4 FLUX_TASK_LOCAL_ID=0 FLUX_JOB_NNODES=2 " +
			"FLUX_JOB_ID=f23A PMI_RANK=2 PMI_SIZE=4 PMI_FD=20",
			placed(Flux, 2, 4, 0, Unknown, Unknown, 2), "f23A"},
		{"flux, one node", "FLUX_TASK_RANK=2 FLUX_JOB_SIZE=4 FLUX_TASK_LOCAL_ID=2 " +
			"FLUX_JOB_NNODES=1 FLUX_JOB_ID=f23A",
			placed(Flux, 2, 4, 2, 4, 0, 1), "f23A"},
		{"flux, one task per node",
			"FLUX_TASK_RANK=1 FLUX_JOB_SIZE=2 FLUX_TASK_LOCAL_ID=0 FLUX_JOB_NNODES=2 " +
				"FLUX_JOB_ID=f23A",
			placed(Flux, 1, 2, 0, 1, 1, 2), "f23A"},
		{"flux batch script", "FLUX_JOB_ID=f23A FLUX_JOB_SIZE=4 FLUX_URI=local:///run/flux",
			placed(None, Unknown, Unknown, Unknown, Unknown, Unknown, Unknown), ""},
		{"jsrun", "JSM_NAMESPACE_RANK=6 JSM_NAMESPACE_SIZE=12 JSM_NAMESPACE_LOCAL_RANK=0 " +
			"JSM_NAMESPACE_LOCAL_SIZE=6 LSB_JOBID=77",
			placed(JSM, 6, 12, 0, 6, Unknown, Unknown), "77"},
		{"jsrun with Open MPI's names",
			"JSM_NAMESPACE_RANK=6 JSM_NAMESPACE_SIZE=12 JSM_NAMESPACE_LOCAL_RANK=0 LSB_JOBID=77 " +
				"OMPI_COMM_WORLD_RANK=6 OMPI_COMM_WORLD_SIZE=12 PMIX_RANK=6 PMIX_NAMESPACE=ns",
			placed(JSM, 6, 12, 0, Unknown, Unknown, Unknown), "77"},
		{"intel mpi", "PMI_RANK=3 PMI_SIZE=4 PMI_FD=9 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 " +
			"I_MPI_MPIRUN=mpirun I_MPI_HYDRA_TOPOLIB=hwloc",
			placed(IntelMPI, 3, 4, 1, 2, Unknown, Unknown), ""},
		{"mpich with a loaded module of intel mpi",
			"PMI_RANK=3 PMI_SIZE=4 PMI_FD=9 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 " +
				"I_MPI_ROOT=/opt/intel",
			placed(Hydra, 3, 4, 1, 2, Unknown, Unknown), ""},
		{"cray pmi in a slurm step",
			"SLURM_PROCID=3 SLURM_STEP_ID=0 SLURM_JOB_ID=9 SLURM_STEP_NUM_TASKS=4 " +
				"SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_STEP_NUM_NODES=2 " +
				"SLURM_STEP_TASKS_PER_NODE=2(x2) PMI_JOBID=1234 PMI_RANK=3 PMI_SIZE=4",
			placed(Slurm, 3, 4, 1, 2, 1, 2), "9.0"},
		{"torchrun", "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 GROUP_RANK=1 " +
			"GROUP_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none MASTER_ADDR=h MASTER_PORT=1",
			placed(Torchrun, 5, 8, 1, 4, 1, 2), "none"},
		{"torchrun without LOCAL_RANK", "RANK=5 WORLD_SIZE=8 TORCHELASTIC_RUN_ID=none",
			placed(None, Unknown, Unknown, Unknown, Unknown, Unknown, Unknown), ""},
		{"PyTorchJob", "RANK=1 WORLD_SIZE=2 MASTER_ADDR=job-master-0 MASTER_PORT=23456 " +
			"KUBERNETES_SERVICE_HOST=10.0.0.1",
			placed(Kubeflow, 1, 2, 0, 1, 1, 2), ""},
		{"PyTorchJob with processes per node",
			"RANK=1 WORLD_SIZE=8 PET_NODE_RANK=1 PET_NNODES=2 PET_NPROC_PER_NODE=4 " +
				"KUBERNETES_SERVICE_HOST=10.0.0.1",
			placed(Kubeflow, 1, 2, 0, 1, 1, 2), ""},
		{"TrainJob", "PET_NNODES=3 PET_NODE_RANK=2 PET_NPROC_PER_NODE=auto " +
			"PET_MASTER_ADDR=node-0-0 PET_MASTER_PORT=29400",
			placed(Kubeflow, 2, 3, 0, 1, 2, 3), ""},
		{"TrainJob, range of one", "PET_NNODES=2:2 PET_NODE_RANK=1",
			placed(Kubeflow, 1, 2, 0, 1, 1, 2), ""},
		{"torchrun in a pod",
			"RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 GROUP_RANK=1 " +
				"TORCHELASTIC_RUN_ID=x PET_NODE_RANK=1 PET_NNODES=2 " +
				"KUBERNETES_SERVICE_HOST=10.0.0.1",
			placed(Torchrun, 5, 8, 1, 4, 1, Unknown), "x"},
		{"Indexed Job", "JOB_COMPLETION_INDEX=2 KUBERNETES_SERVICE_HOST=10.0.0.1",
			placed(Kubernetes, 2, Unknown, 0, 1, 2, Unknown), ""},
		{"mpirun in a pod of an Indexed Job",
			"JOB_COMPLETION_INDEX=0 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 " +
				"OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 " +
				"OMPI_MCA_ess_base_jobid=7",
			placed(OpenMPI4, 1, 2, 1, 2, 0, 1), "7"},
		{"mpirun of Open MPI 4 in a rank of Open MPI 5",
			"PRTE_LAUNCHED=1 OMPI_VERSION=5.0.7 OMPI_MCA_orte_hnp_uri=7.0;tcp://10.0.0.1:99 " +
				"OMPI_MCA_ess_base_jobid=7 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2",
			placed(OpenMPI4, 1, 2, Unknown, Unknown, Unknown, Unknown), "7-99"},
		{"salloc's interactive shell",
			"SLURM_PROCID=0 SLURM_STEP_ID=4294967290 SLURM_NTASKS=1 SLURM_JOB_ID=3",
			placed(None, Unknown, Unknown, Unknown, Unknown, Unknown, Unknown), ""},
		{"no launcher", "PATH=/bin", placed(None, Unknown, Unknown, Unknown, Unknown, Unknown,
			Unknown), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := detected(t, ParseEnv(strings.Fields(row.env)), "")
			wantPlacement(t, p, row.want)
			if p.Job != row.job {
				t.Errorf("job %q, want %q", p.Job, row.job)
			}
		})
	}
}

func placed(l Launcher, rank, size, localRank, localSize, nodeRank, nodes int) Placement {
	return Placement{Launcher: l, Rank: rank, Size: size, LocalRank: localRank,
		LocalSize: localSize, NodeRank: nodeRank, Nodes: nodes}
}

func TestKubeflowSetsPerNodeAndMaster(t *testing.T) {
	for _, row := range []struct{ env, perNode, master string }{
		{"PET_NNODES=3 PET_NODE_RANK=2 PET_NPROC_PER_NODE=auto PET_MASTER_ADDR=node-0-0", "auto",
			"node-0-0"},
		{"PET_NNODES=3 PET_NODE_RANK=2 PET_NPROC_PER_NODE=2 MASTER_ADDR=job-master-0", "2",
			"job-master-0"},
		{"RANK=1 WORLD_SIZE=2 MASTER_ADDR=job-master-0 KUBERNETES_SERVICE_HOST=10.0.0.1", "",
			"job-master-0"},
	} {
		p := detected(t, ParseEnv(strings.Fields(row.env)), "")
		if p.PerNode != row.perNode || p.Master != row.master {
			t.Errorf("%s: PerNode %q, Master %q", row.env, p.PerNode, p.Master)
		}
	}
}

// prterun without Open MPI's personality sets a rank but no size (recorded).
func TestPlainPrterun(t *testing.T) {
	for rank := range 4 {
		p := detected(t, recorded(t, "openmpi5-prterun", rank), "")
		wantPlacement(t, p, placed(OpenMPI5, rank, Unknown, Unknown, Unknown, Unknown, Unknown))
		if row := p.source("size"); row.Value != "unknown" ||
			!strings.Contains(row.Note, "--personality ompi") {
			t.Errorf("row of the size: %+v, want unknown with --personality ompi", row)
		}
	}
}
