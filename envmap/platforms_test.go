package envmap

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// A platformCase is a set of environments made from a platform's source or documentation (see
// platforms), one per node. master is what all of them take for rank 0's.
type platformCase struct {
	name     string // of the files
	launcher Launcher
	platform string
	nodes    int
	master   string
	perNode  string
	job      string // of the host names of pods, to which -RANK is added; "" if they do not matter
}

var platformCases = []platformCase{
	{"trainjob", Kubeflow, "Kubeflow TrainJob", 3, "bert-node-0-0.bert", "auto", ""},
	{"pytorchjob", Kubeflow, "PyTorchJob", 2, "bert-master-0", "", ""},
	{"pytorchjobpet", Kubeflow, "PyTorchJob", 2, "bert-master-0", "4", ""},
	{"volcanopytorch", Kubeflow, "PyTorchJob", 2, "bert-master-0.bert", "", ""},
	{"lws", LWS, "LeaderWorkerSet", 2, "vllm-0.vllm.default", "", ""},
	{"volcano", Volcano, "Volcano job", 2, "bert-my-workers-0.bert", "", ""},
	{"volcanofile", Volcano, "Volcano job", 2, "bert-worker-0.bert", "", "bert-worker"},
	{"skypilot", SkyPilot, "SkyPilot task", 2, "10.0.0.4", "8", ""},
	{"dstack", Dstack, "dstack task", 2, "10.0.0.4", "8", ""},
	{"beaker", Beaker, "Beaker task", 2, "node-101.example", "8", ""},
	{"runpod", RunPod, "RunPod cluster", 2, "10.65.0.2", "8", ""},
	{"jobset", JobSet, "JobSet", 3, "bert-workers-0-0.bert", "", ""},
	{"jobsetglobal", JobSet, "JobSet", 3, "bert-workers-0-0.bert", "", "bert-workers"},
	{"indexedjob", Kubernetes, "Indexed Job", 3, "train-0.bert", "", "train"},
}

// given is what the agent knows besides the environment. The kubelet writes /etc/hosts like this.
func (c platformCase) given(env Env) Given {
	host := env["HOSTNAME"]
	nodes, _ := strconv.Atoi(env["RDZV_NODES"])
	return Given{Nodes: nodes, Host: host, Root: fstest.MapFS{"etc/hosts": {Data: []byte(
		"# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\nfe00::0\tip6-localnet\n" +
			"10.244.1.7\t" + host + ".bert.default.svc.cluster.local\t" + host + "\n")}}}
}

func TestPlatforms(t *testing.T) {
	for _, c := range platformCases {
		t.Run(c.name, func(t *testing.T) {
			for rank := range c.nodes {
				env := recorded(t, "platform-"+c.name, rank)
				p, err := DetectGiven(env, c.given(env))
				if err != nil || p.CheckComplete() != nil {
					t.Fatalf("node %d: %v, %v", rank, err, p.CheckComplete())
				}
				wantPlacement(t, p, placed(c.launcher, rank, c.nodes, 0, 1, rank, c.nodes))
				if p.Platform != c.platform || p.PerNode != c.perNode {
					t.Errorf("platform %q, %q workers per node", p.Platform, p.PerNode)
				}
				explained := slices.ContainsFunc(p.Explain(), func(row Row) bool {
					return row.What == "rank 0's node" && row.Value == p.Master && row.From != ""
				})
				if p.Master != c.master || !explained {
					t.Errorf("rank 0's node is %q, want %q: %v", p.Master, c.master, p.Explain())
				}
			}
		})
	}
}

// Each row of the table has a case.
func TestEveryPlatformHasACase(t *testing.T) {
	for _, pl := range platforms {
		if !slices.ContainsFunc(platformCases, func(c platformCase) bool {
			return c.launcher == pl.launcher && c.platform == pl.name
		}) {
			t.Errorf("%s has no case", pl.name)
		}
	}
}

// Where the index of a pod ends its host name, it names pod 0; the subdomain is that of its full
// name in /etc/hosts.
func TestFirstPod(t *testing.T) {
	for _, row := range []struct{ host, hosts, master, platform string }{
		{"train-3", "10.0.0.1 train-3.svc.ns.svc.cluster.local train-3", "train-0.svc", "Indexed Job"},
		{"train-3", "10.0.0.1 other.svc train-33.x train-3 # train-3.no", "train-0", "Indexed Job"},
		{"train-3", "", "train-0", "Indexed Job"},
		{"train-3.svc.ns", "", "train-0.svc", "Indexed Job"},
		{"a-w-0-3", "10.0.0.1 a-w-0-3.a.ns a-w-0-3", "a-w-0-0.a", "JobSet"},
		{"a-b-w-1-3", "10.0.0.1 a-b-w-1-3.a-b.ns a-b-w-1-3", "a-b-w-1-0.a-b", "JobSet"},
		{"a-w-3", "10.0.0.1 a-w-3.a.ns a-w-3", "a-w-0.a", "Indexed Job"},
		{"node17", "10.0.0.1 node17.cluster node17", "", "Indexed Job"}, // its node's network
		{"-3", "", "", "Indexed Job"},
		{"", "", "", "Indexed Job"},
	} {
		p, err := DetectGiven(Env{"JOB_COMPLETION_INDEX": "3"}, Given{
			Nodes: 4, Host: row.host, Root: fstest.MapFS{"etc/hosts": {Data: []byte(row.hosts)}},
		})
		if err != nil || p.Master != row.master || p.Platform != row.platform {
			t.Errorf("%+v: %q on %q, %v", row, p.Master, p.Platform, err)
		}
	}
	p, _ := DetectGiven(Env{"JOB_COMPLETION_INDEX": "3"}, Given{Nodes: 4, Host: "train-3"})
	if p.Master != "train-0" {
		t.Errorf("without files: %q", p.Master)
	}
}

// A platform without a count, or without an index, is refused with what to write.
func TestIncompletePlatforms(t *testing.T) {
	for _, row := range []struct {
		env   string
		nodes int
		text  string // of the error
		hint  string
	}{
		{"JOB_COMPLETION_INDEX=1", 0, "JOB_COMPLETION_INDEX=1 is set, but not how many there are",
			`{name: RDZV_NODES, value: "N"}, N being the Job's completions`},
		{"JOB_COMPLETION_INDEX=0 JOBSET_COORDINATOR=a.b", 0, "JOB_COMPLETION_INDEX=0",
			"N being the number of pods"},
		{"JOB_COMPLETION_INDEX=4", 4, "(JOB_COMPLETION_INDEX=4) contradicts size 4 (--nodes 4)", ""},
		{"JOB_COMPLETION_INDEX=1 JOBSET_JOB_GLOBAL_INDEX=3", 8, "numbers Jobs", "one pod"},
		{"VC_TASK_INDEX=0", 0, "VC_TASK_INDEX=0 is set, but not how many", "--nodes N"},
		{"VC_WORKER_NUM=2 VC_WORKER_HOSTS=a,b", 0, "VC_WORKER_NUM=2 is set, but VC_TASK_INDEX is not",
			"set VC_TASK_INDEX"},
		{"VC_TASK_INDEX=0 VC_MASTER_NUM=1 VC_MASTER_HOSTS=a VC_WORKER_NUM=2 VC_WORKER_HOSTS=b,c", 0,
			"several: VC_MASTER_NUM=1, VC_WORKER_NUM=2", "plugin pytorch"},
		{"VC_MASTER_NUM=1 VC_MASTER_HOSTS=a VC_WORKER_NUM=2 VC_WORKER_HOSTS=b,c", 0, "several", ""},
		{"LWS_GROUP_SIZE=2 LWS_LEADER_ADDRESS=a", 0, "LWS_WORKER_INDEX is not", "worker-index']"},
		{"LWS_WORKER_INDEX=1", 0, "LWS_WORKER_INDEX=1 is set, but not how many", "--nodes N"},
		{"WORLD_SIZE=2 KUBERNETES_SERVICE_HOST=10.0.0.1", 0, "WORLD_SIZE=2 is set but no launcher",
			"unset them"},
		{"RANK=1 KUBERNETES_SERVICE_HOST=10.0.0.1", 0, "RANK=1 is set, but not how many", "--nodes N"},
		{"SKYPILOT_NUM_NODES=2", 0, "SKYPILOT_NODE_RANK is not", "--nodes 1"},
		{"DSTACK_NODE_RANK=2 DSTACK_NODES_NUM=2", 0, "contradicts", ""},
		{"BEAKER_REPLICA_RANK=x BEAKER_REPLICA_COUNT=2", 0, `BEAKER_REPLICA_RANK="x"`, ""},
		{"RUNPOD_POD_ID=x NUM_NODES=2", 0, "NODE_RANK is not", ""},
	} {
		env := ParseEnv(strings.Fields(row.env))
		p, err := DetectGiven(env, Given{Nodes: row.nodes})
		if err == nil {
			err = p.CheckComplete()
		}
		e, ok := err.(*Error)
		if !ok || !strings.Contains(e.Text, row.text) || !strings.Contains(e.Hint, row.hint) {
			t.Errorf("%s: %#v, want %q with hint %q", row.env, err, row.text, row.hint)
		}
		wantAlone(t, env, Given{Nodes: 1})
		wantAlone(t, env, Given{Launcher: None})
	}
}

// wantAlone checks that this process is a job of its own.
func wantAlone(t *testing.T, env Env, given Given) {
	t.Helper()
	p, err := DetectGiven(env, given)
	if err != nil || p.CheckComplete() != nil || p.Launcher != None || p.Platform != "" {
		t.Errorf("%v, nodes %d, launcher %q: %s, %v, %v", env, given.Nodes, given.Launcher,
			numbersOf(p), err, p.CheckComplete())
	}
}

// Variables that count one node are those of a process on its own, and others are not.
func TestOneNode(t *testing.T) {
	none := placed(None, Unknown, Unknown, Unknown, Unknown, Unknown, Unknown)
	for env, want := range map[string]Placement{
		"SKYPILOT_NODE_RANK=0 SKYPILOT_NUM_NODES=1": placed(SkyPilot, 0, 1, 0, 1, 0, 1),
		"SKYPILOT_NUM_NODES=1":                      none,
		"NODE_RANK=0 NNODES=1":                      none,
	} {
		p := detected(t, ParseEnv(strings.Fields(env)), "")
		wantPlacement(t, p, want)
		if err := p.CheckComplete(); err != nil {
			t.Errorf("%s: %v", env, err)
		}
	}
	p := detected(t, Env{
		"DSTACK_NODE_RANK": "0", "DSTACK_NODES_NUM": "1", "DSTACK_GPUS_PER_NODE": "0",
	}, "")
	if p.PerNode != "" {
		t.Errorf("%q workers on a node without GPUs", p.PerNode)
	}
}

// A step of MPI or Slurm wins over a platform, but one task is refused on one of several nodes.
func TestStepsOnPlatforms(t *testing.T) {
	const lws = " LWS_WORKER_INDEX=1 LWS_GROUP_SIZE=2 LWS_LEADER_ADDRESS=a"
	for step, launcher := range map[string]Launcher{
		"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4":                                OpenMPI4,
		"PMI_RANK=3 PMI_SIZE=4 MPI_LOCALRANKID=1":                                      Hydra,
		"SLURM_PROCID=3 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_JOB_ID=7":         Slurm,
		"RANK=3 WORLD_SIZE=4 LOCAL_RANK=0 TORCHELASTIC_RUN_ID=x KUBERNETES_PORT=1":     Torchrun,
		"PALS_RANKID=3 PALS_SIZE=4 PALS_APID=x JOB_COMPLETION_INDEX=0 PALS_NODEID=1":   PALS,
		"FLUX_TASK_RANK=3 FLUX_JOB_SIZE=4 FLUX_TASK_LOCAL_ID=0 VC_TASK_INDEX=1 NODE=x": Flux,
	} {
		p := detected(t, ParseEnv(strings.Fields(step+lws)), "")
		if p.Launcher != launcher || p.Rank != 3 || p.Size != 4 || p.CheckComplete() != nil {
			t.Errorf("%s: %s, %v", step, numbersOf(p), p.CheckComplete())
		}
	}
	env := ParseEnv(strings.Fields("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1" + lws))
	p := detected(t, env, "")
	const want = "LWS_WORKER_INDEX=1 and LWS_GROUP_SIZE=2 are set, " +
		"but OMPI_COMM_WORLD_SIZE=1 (openmpi4)"
	if err := p.CheckComplete(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	for _, given := range []Given{{Nodes: 1}, {Launcher: OpenMPI4}} {
		if p, err := DetectGiven(env, given); err != nil || p.Size != 1 || p.CheckComplete() != nil {
			t.Errorf("%+v: %s, %v, %v", given, numbersOf(p), err, p.CheckComplete())
		}
	}
}

// --launcher chooses a platform, even one whose variables would not identify it.
func TestChosenPlatforms(t *testing.T) {
	for _, row := range []struct {
		env    string
		choice Launcher
		want   Placement
	}{
		{"RANK=1 WORLD_SIZE=2", Kubeflow, placed(Kubeflow, 1, 2, 0, 1, 1, 2)},
		{"NODE_RANK=1 NUM_NODES=2", RunPod, placed(RunPod, 1, 2, 0, 1, 1, 2)},
		{"DSTACK_NODE_RANK=1 DSTACK_NODES_NUM=2 SKYPILOT_NODE_RANK=3 SKYPILOT_NUM_NODES=4", Dstack,
			placed(Dstack, 1, 2, 0, 1, 1, 2)},
	} {
		wantPlacement(t, detected(t, ParseEnv(strings.Fields(row.env)), row.choice), row.want)
	}
	for _, pl := range platforms {
		wantError(t, Env{}, pl.launcher, "cannot determine the rank")
	}
}

func TestPlatformOf(t *testing.T) {
	for env, want := range map[string]string{
		"JOB_COMPLETION_INDEX=1":                                  "Indexed Job",
		"JOB_COMPLETION_INDEX=1 PET_NODE_RANK=1 PET_NNODES=2":     "Kubeflow TrainJob",
		"PET_NNODES=1:4 PET_RDZV_ENDPOINT=bert-worker-0:29400":    "PyTorchJob",
		"LWS_WORKER_INDEX=1 OMPI_COMM_WORLD_RANK=0":               "LeaderWorkerSet",
		"NODE_RANK=1 NUM_NODES=2 PATH=/bin SKYPILOT_NUM_NODES=1":  "",
		"NODE_RANK=1 NUM_NODES=2 RUNPOD_POD_ID=x RUNPOD_DC_ID=EU": "RunPod cluster",
	} {
		if got := PlatformOf(ParseEnv(strings.Fields(env))); got != want {
			t.Errorf("%s: %q, want %q", env, got, want)
		}
	}
}
