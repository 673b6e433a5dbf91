package envmap

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// The starters with the variables of their documentation: who is told of others is refused, with the
// line to write.
func TestStartersOfOthersAreRefused(t *testing.T) {
	const spec = `{"cluster":{"workerpool0":["pool0-0:2222"],"workerpool1":["pool1-0:2222",` +
		`"pool1-1:2222"]},"environment":"cloud","task":{"type":"workerpool0","index":0},` +
		`"job":"{\"cluster\":\"x\"}"}`
	for _, row := range []struct {
		environ string // one variable a line
		says    string
		nodes   string
		store   string
	}{
		{"PBS_JOBID=1\nPBS_NODENUM=1\nPBS_VNODENUM=8\nPBS_TASKNUM=3\nPBS_NODEFILE=/nodes",
			"PBS_NODENUM=1 and PBS_VNODENUM=8 (pbsdsh) say", "2", "node1"},
		{"PBS_JOBID=1\nPBS_NODENUM=1", "PBS_NODENUM=1 (pbsdsh) says", "N", "HOST"},
		{"PBS_NODENUM=0\nPBS_VNODENUM=3\nPBS_NODEFILE=/missing",
			"PBS_NODENUM=0 and PBS_VNODENUM=3 (pbsdsh) say", "N", "HOST"},
		{"LSB_JOBID=7\nLSB_MCPU_HOSTS=node1 8 node2 8\nLSF_PM_TASKID=2", "LSF_PM_TASKID=2 (blaunch) says",
			"2", "node1"},
		{"ALPS_APP_PE=3", "ALPS_APP_PE=3 (aprun) says", "N", "HOST"},
		{"_CONDOR_PROCNO=0\n_CONDOR_NPROCS=4", "_CONDOR_PROCNO=0 and _CONDOR_NPROCS=4 (HTCondor) say", "4",
			"HOST"},
		{"SM_HOST_COUNT=2\nSM_CURRENT_HOST_RANK=1\nSM_HOSTS=[\"algo-1\",\"algo-2\"]\nSM_CURRENT_HOST=algo-2",
			"SM_CURRENT_HOST_RANK=1 and SM_HOST_COUNT=2 (SageMaker) say", "2", "algo-1"},
		{"SM_HOST_COUNT=2\nSM_CURRENT_HOST_RANK=0\nSM_MASTER_ADDR=algo-1",
			"SM_CURRENT_HOST_RANK=0 and SM_HOST_COUNT=2 (SageMaker) say", "2", "algo-1"},
		{`SM_HOSTS=["algo-1", "algo-2"]`, `SM_HOSTS=["algo-1", "algo-2"] (SageMaker) says`, "2", "algo-1"},
		{"AWS_BATCH_JOB_NODE_INDEX=1\nAWS_BATCH_JOB_NUM_NODES=3\nAWS_BATCH_JOB_MAIN_NODE_INDEX=0\n" +
			"AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS=10.0.0.4",
			"AWS_BATCH_JOB_NODE_INDEX=1 and AWS_BATCH_JOB_NUM_NODES=3 (AWS Batch) say", "3", "10.0.0.4"},
		{"AWS_BATCH_JOB_NODE_INDEX=0\nAWS_BATCH_JOB_NUM_NODES=3",
			"AWS_BATCH_JOB_NODE_INDEX=0 and AWS_BATCH_JOB_NUM_NODES=3 (AWS Batch) say", "3", "HOST"},
		{"MF_PARALLEL_NODE_INDEX=1\nMF_PARALLEL_NUM_NODES=2\nMF_PARALLEL_MAIN_IP=10.0.0.4",
			"MF_PARALLEL_NODE_INDEX=1 and MF_PARALLEL_NUM_NODES=2 (Metaflow) say", "2", "10.0.0.4"},
		{"AZ_BATCH_HOST_LIST=10.0.0.4,10.0.0.5\nAZ_BATCH_NODE_LIST=10.0.0.4;10.0.0.5\n" +
			"AZ_BATCH_IS_CURRENT_NODE_MASTER=true",
			"AZ_BATCH_HOST_LIST=10.0.0.4,10.0.0.5 (Azure Batch) says", "2", "10.0.0.4"},
		{"AZ_BATCH_NODE_LIST=10.0.0.4;10.0.0.5;10.0.0.6", "AZ_BATCH_NODE_LIST=10.0.0.4;10.0.0.5;10.0.0.6 " +
			"(Azure Batch) says", "3", "10.0.0.4"},
		{"CLUSTER_SPEC=" + spec, "CLUSTER_SPEC with 3 nodes (Vertex AI) says", "3", "pool0-0"},
		{`TF_CONFIG={"task":{"type":"worker","index":1},"cluster":{"worker":["job-0.svc:2222",` +
			`"job-1.svc:2222"]}}`, "TF_CONFIG with 2 nodes (TFJob or Vertex AI) says", "2", "job-0.svc"},
		{"LEPTON_JOB_WORKER_INDEX=1\nLEPTON_JOB_TOTAL_WORKERS=2",
			"LEPTON_JOB_WORKER_INDEX=1 and LEPTON_JOB_TOTAL_WORKERS=2 (Lepton) say", "2", "HOST"},
		{"MLP_ROLE_INDEX=1\nMLP_WORKER_NUM=2\nMLP_WORKER_0_HOST=192.0.2.4",
			"MLP_ROLE_INDEX=1 and MLP_WORKER_NUM=2 (Volcengine) say", "2", "192.0.2.4"},
		{"TAKTUK_RANK=1\nTAKTUK_COUNT=2", "TAKTUK_RANK=1 and TAKTUK_COUNT=2 (TakTuk) say", "2", "HOST"},
		{"NODE_RANK=1", "NODE_RANK=1 says", "N", "HOST"},
		{"NODE_RANK=1\nMASTER_ADDR=node1", "NODE_RANK=1 says", "N", "node1"},
		{"NODE_RANK=1\nMASTER_ADDR=127.0.0.1", "NODE_RANK=1 says", "N", "HOST"},
		{"NODE_RANK=0\nNNODES=2\nMASTER_ADDR=node1", "NODE_RANK=0 and NNODES=2 say", "2", "node1"},
		{"NODE_RANK=1\nNUM_NODES=2", "NODE_RANK=1 and NUM_NODES=2 say", "2", "HOST"},
		{"NODE_RANK=1\nNODE_COUNT=2", "NODE_RANK=1 and NODE_COUNT=2 say", "2", "HOST"},
		{"GROUP_RANK=2", "GROUP_RANK=2 says", "N", "HOST"},
	} {
		env := ParseEnv(strings.Split(row.environ, "\n"))
		hint := "for one job: rdzv exec --nodes " + row.nodes + " --store " + row.store +
			" -- PROGRAM, the same on each node; if this process is meant alone: --nodes 1 or --launcher none"
		wantRefused(t, env, row.says, hint)
	}
}

// What numbers processes rather than nodes, or was passed on in part, has other ways out.
func TestNumberedProcessesAreRefused(t *testing.T) {
	for environ, want := range map[string][2]string{
		"RANK=1": {"RANK=1 says", "set RANK, WORLD_SIZE and MASTER_ADDR in each process, and give " +
			"--launcher env"},
		"RANK=1 MASTER_ADDR=node9": {"RANK=1 says", "--launcher env"},
		"LOCAL_RANK=3":             {"LOCAL_RANK=3 says", "--launcher env"},
		"SLURM_PROCID=3 SLURM_NTASKS=4": {"SLURM_PROCID=3 (srun) says",
			"pass on all variables of srun, for example into the container: SLURM_STEP_ID is not set"},
		"PMIX_RANK=1 PMIX_NAMESPACE=x":  {"PMIX_RANK=1 (PMIx) says", "--launcher env"},
		"HOROVOD_RANK=0 HOROVOD_SIZE=2": {"HOROVOD_RANK=0 and HOROVOD_SIZE=2 (horovodrun) say", "--nodes N"},
	} {
		wantRefused(t, ParseEnv(strings.Fields(environ)), want[0], want[1])
	}
}

func wantRefused(t *testing.T, env Env, says, hint string) {
	t.Helper()
	given := Given{Root: fstest.MapFS{"nodes": {Data: []byte("node1\nnode1\nnode2\n")}}}
	p, err := DetectGiven(env, given)
	if err == nil {
		err = p.CheckComplete()
	}
	e, _ := err.(*Error)
	if e == nil || e.Text != "cannot start a job of one process: "+says+" that there are others" ||
		!strings.Contains(e.Hint, hint) {
		t.Errorf("%v: %#v", env, err)
	}
	if p.Doubt() != nil || !strings.Contains(p.Unclaimed, "set") {
		t.Errorf("%v: %v, unclaimed %q", env, p.Doubt(), p.Unclaimed)
	}
	wantAlone(t, env, Given{Nodes: 1})
	wantAlone(t, env, Given{Launcher: None})
	if p, err := DetectGiven(env, Given{Nodes: 2}); err != nil || p.CheckComplete() != nil {
		t.Errorf("%v with --nodes 2: %v, %v", env, err, p.CheckComplete())
	}
}

// The lowest index of a starter that gives no count may be that of a process on its own.
func TestLowestIndexLeavesItOpen(t *testing.T) {
	for environ, set := range map[string]string{
		"PBS_NODENUM=0 PBS_VNODENUM=0 PBS_TASKNUM=1": "PBS_NODENUM=0 and PBS_VNODENUM=0 are",
		"LSF_PM_TASKID=1":               "LSF_PM_TASKID=1 is",
		"ALPS_APP_PE=0":                 "ALPS_APP_PE=0 is",
		"NODE_RANK=0 MASTER_ADDR=node1": "NODE_RANK=0 is",
		"LEPTON_JOB_WORKER_INDEX=0":     "LEPTON_JOB_WORKER_INDEX=0 is",
		"SLURM_PROCID=0 SLURM_NTASKS=4": "SLURM_PROCID=0 is",
	} {
		env := ParseEnv(strings.Fields(environ))
		p := detected(t, env, "")
		e, _ := p.Doubt().(*Error)
		if e == nil || e.Text != "running a job of one node: "+set+" set, but not how many there are" ||
			!strings.Contains(e.Hint, "--nodes 1") {
			t.Errorf("%s: %#v", environ, p.Doubt())
		}
		wantAlone(t, env, Given{})
		for _, given := range []Given{{Nodes: 1}, {Nodes: 2}, {Launcher: None}} {
			if p, err := DetectGiven(env, given); err != nil || p.Doubt() != nil {
				t.Errorf("%s, %+v: %v, %v", environ, given, err, p.Doubt())
			}
		}
	}
}

// A process on its own stays one, and nothing is said.
func TestProcessesOnTheirOwn(t *testing.T) {
	for _, environ := range []string{
		"SM_HOST_COUNT=1 SM_CURRENT_HOST_RANK=0", `SM_HOSTS=["algo-1"] SM_CURRENT_HOST=algo-1`,
		"_CONDOR_PROCNO=0 _CONDOR_NPROCS=1", "_CONDOR_SLOT=slot1_3",
		"AZ_BATCH_NODE_LIST=10.0.0.4", "AZ_BATCH_NODE_ID=x", "MF_PARALLEL_NUM_NODES=1",
		`CLUSTER_SPEC={"cluster":{"workerpool0":["pool0-0:2222"]},"task":{"index":0}}`,
		`TF_CONFIG={"cluster":{"chief":["a:1"]},"task":{"type":"chief","index":0}}`,
		"TF_CONFIG={}", "TF_CONFIG=x", "CLUSTER_SPEC=[", `CLUSTER_SPEC={"cluster":[[[`,
		"NODE_RANK=0 NNODES=1", "NODE_RANK=x", "NNODES=4", "NUM_NODES=2", "RANK=0", "RANK=0 LOCAL_RANK=0",
		"RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 NODE_RANK=0 NNODES=1 MASTER_ADDR=localhost",
		"PMIX_RANK=0 PMIX_NAMESPACE=x", "PMIX_RANK=1", "TAKTUK_RANK=1 TAKTUK_COUNT=1",
		"SLURM_ARRAY_TASK_ID=3", "PBS_ARRAY_INDEX=3", "PBS_ARRAYID=3", "LSB_JOBINDEX=3", "SGE_TASK_ID=3",
		"AWS_BATCH_JOB_ARRAY_INDEX=3", "BATCH_TASK_INDEX=3 BATCH_TASK_COUNT=4", "PARALLEL_SEQ=3",
		"PBS_TASKNUM=146",
		// a shell with the output of rdzv env
		"RANK=1 NODE_RANK=1 LOCAL_RANK=1 GROUP_RANK=1 RDZV_DETECTED=none",
	} {
		env := ParseEnv(strings.Fields(environ))
		wantAlone(t, env, Given{})
		if p := detected(t, env, ""); p.Doubt() != nil || p.Unclaimed != "" {
			t.Errorf("%s: %v, unclaimed %q", environ, p.Doubt(), p.Unclaimed)
		}
	}
}

// A launcher that has started one process does not use the nodes that a starter counts. An index
// alone does not matter: the launcher was started there for this process.
func TestLaunchersUnderStarters(t *testing.T) {
	const alone, four = "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 ",
		"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 "
	p := detected(t, ParseEnv(strings.Fields(alone+"SM_HOST_COUNT=2 SM_CURRENT_HOST_RANK=0")), "")
	const want = "SM_CURRENT_HOST_RANK=0 and SM_HOST_COUNT=2 are set, but OMPI_COMM_WORLD_SIZE=1 (openmpi4)"
	if err := p.CheckComplete(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	for _, environ := range []string{
		four + "SM_HOST_COUNT=2 SM_CURRENT_HOST_RANK=0", alone + "PBS_NODENUM=1", alone + "NODE_RANK=1",
		alone + "LSF_PM_TASKID=2", alone + "NODE_RANK=1 NNODES=2",
		"SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_NTASKS=1 NODE_RANK=1",
	} {
		p := detected(t, ParseEnv(strings.Fields(environ)), "")
		if p.Launcher == None || p.CheckComplete() != nil || p.Doubt() != nil {
			t.Errorf("%s: %s, %v, %v", environ, p.Launcher, p.CheckComplete(), p.Doubt())
		}
	}
}

// What identifies a platform is no starter's: the platform's ranks are used.
func TestStartersAreNoPlatforms(t *testing.T) {
	for _, s := range starters {
		for _, pl := range platforms {
			own := func(name string) bool { return s.name != "" && slices.Contains(pl.index, name) }
			if slices.ContainsFunc(s.index, own) {
				t.Errorf("%s and %s have the same index", s.name, pl.name)
			}
		}
	}
}
