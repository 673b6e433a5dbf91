package envmap

import (
	"slices"
	"strings"
)

// A starter starts a process on each node, or several, and tells it by variables that there are
// others. rdzv takes no ranks from them: they do not say all that a job needs. Without Config.Nodes
// each process would be a job of its own, and all of them would write the same snapshots.
type starter struct {
	name    string         // for people; "" for variables that scripts set
	only    func(Env) bool // what else identifies it; nil if its variables do
	index   []string       // of this process, or of its node
	first   int            // the lowest index
	count   []string       // how many there are; the first that is set
	hosts   string         // the variable that lists the nodes
	cluster bool           // it does so as a TF_CONFIG
	master  string         // the variable with the node to name if hosts does not list it
	common  bool           // a process on its own commonly has the lowest index, too
	instead string         // what to do instead of naming the nodes
}

// starters are those whose variables nobody else sets, then what scripts set. The index of an array
// job (SLURM_ARRAY_TASK_ID, PBS_ARRAY_INDEX, LSB_JOBINDEX, SGE_TASK_ID, BATCH_TASK_INDEX,
// AWS_BATCH_JOB_ARRAY_INDEX) is none: its tasks are jobs of their own. pdsh, clush, qrsh and GNU
// parallel tell no process which of several it is. All is documented, none measured. The source is
// beside each row.
var starters = []starter{
	// pbsdsh(1B): node and virtual node. PBS_TASKNUM is no index: the script of the job has one above
	// 0, too.
	{name: "pbsdsh", index: []string{"PBS_NODENUM", "PBS_VNODENUM"}},
	// Open MPI's and PRRTE's ess/lsf, OpenLava lsf/res/res.c: RES numbers what blaunch starts from 1.
	{name: "blaunch", index: []string{"LSF_PM_TASKID"}, first: 1},
	// aprun(1) of Cray ALPS; libfabric, prov/gni. There is no size.
	{name: "aprun", index: []string{"ALPS_APP_PE"}},
	// htcondor/htcondor: condor_starter.V6.1/parallel_proc.cpp (parallel universe only).
	{name: "HTCondor", index: []string{"_CONDOR_PROCNO"}, count: []string{"_CONDOR_NPROCS"}},
	// aws/sagemaker-python-sdk: modules/train/container_drivers/scripts/environment.py;
	// aws/sagemaker-training-toolkit: ENVIRONMENT_VARIABLES.md has SM_HOSTS alone.
	{name: "SageMaker", index: []string{"SM_CURRENT_HOST_RANK"}, count: []string{"SM_HOST_COUNT"},
		hosts: "SM_HOSTS", master: "SM_MASTER_ADDR"},
	// docs.aws.amazon.com/batch/latest/userguide/mnp-env-vars.html. The main node has no address.
	{name: "AWS Batch", index: []string{"AWS_BATCH_JOB_NODE_INDEX"},
		count:  []string{"AWS_BATCH_JOB_NUM_NODES"},
		master: "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS"},
	// Netflix/metaflow: plugins/parallel_decorator.py.
	{name: "Metaflow", index: []string{"MF_PARALLEL_NODE_INDEX"},
		count: []string{"MF_PARALLEL_NUM_NODES"}, master: "MF_PARALLEL_MAIN_IP"},
	// learn.microsoft.com/azure/batch/batch-compute-node-environment-variables (multi-instance
	// tasks).
	{name: "Azure Batch", hosts: "AZ_BATCH_HOST_LIST"},
	{name: "Azure Batch", hosts: "AZ_BATCH_NODE_LIST"},
	// cloud.google.com/vertex-ai/docs/training/distributed-training: also a job of one node.
	{name: "Vertex AI", hosts: "CLUSTER_SPEC", cluster: true},
	// The same page, and kubeflow/training-operator: pkg/controller.v1/tensorflow (TFJob).
	{name: "TFJob or Vertex AI", hosts: "TF_CONFIG", cluster: true},
	// Scripts for DGX Cloud Lepton, in which they become NODE_RANK and NNODES.
	{name: "Lepton", index: []string{"LEPTON_JOB_WORKER_INDEX"},
		count: []string{"LEPTON_JOB_TOTAL_WORKERS"}},
	// Scripts for Volcengine's ML platform, likewise.
	{name: "Volcengine", index: []string{"MLP_ROLE_INDEX"}, count: []string{"MLP_WORKER_NUM"},
		master: "MLP_WORKER_0_HOST"},
	// horovod/horovod: horovod/runner/gloo_run.py.
	{name: "horovodrun", index: []string{"HOROVOD_RANK", "HOROVOD_LOCAL_RANK"},
		count: []string{"HOROVOD_SIZE"}, instead: "start rdzv exec --nodes N on each node"},
	// taktuk(1).
	{name: "TakTuk", index: []string{"TAKTUK_RANK"}, first: 1, count: []string{"TAKTUK_COUNT"}},
	// srun, where SLURM_STEP_ID was not passed on.
	{name: "srun", index: []string{"SLURM_PROCID"},
		instead: "pass on all variables of srun, for example into the container: SLURM_STEP_ID is " +
			"not set"},
	// The PMIx standard. Launchers that are recognised set more.
	{name: "PMIx", only: func(env Env) bool { return env.has("PMIX_NAMESPACE") },
		index: []string{"PMIX_RANK"}, common: true,
		instead: "if the launcher does not say how many there are: --launcher env with RANK, " +
			"WORLD_SIZE and MASTER_ADDR in each process"},
	{index: []string{"NODE_RANK", "GROUP_RANK"}, count: []string{"NNODES", "NUM_NODES", "NODE_COUNT"},
		master: "MASTER_ADDR"},
	{index: []string{"RANK", "LOCAL_RANK"}, count: []string{"WORLD_SIZE"}, common: true,
		instead: "set RANK, WORLD_SIZE and MASTER_ADDR in each process, and give --launcher env"},
}

// peers is what the variables of a starter say about other processes.
type peers struct {
	starter
	set     []string // the variables, each as "A=1"
	nodes   int      // how many there are; Unknown if they do not say
	host    string   // the first node; "" if they do not say
	certain bool     // there are others; otherwise there may be
}

// maxShown is the length in bytes of a list of nodes that is shown as it is.
const maxShown = 60

// peersOf returns what the first starter says whose variables tell of others, or leave it open.
func peersOf(env Env) (found peers, any bool) {
	for _, s := range starters {
		p, told := s.peers(env)
		if told && (p.certain || !any) {
			found, any = p, true
		}
		if found.certain {
			break
		}
	}
	return found, any
}

// peers is what the variables of this starter say; told is false if they name no other process.
// What rdzv env has printed is nobody's job: it sets RDZV_DETECTED too.
func (s starter) peers(env Env) (p peers, told bool) {
	if s.only != nil && !s.only(env) || s.name == "" && env.has("RDZV_DETECTED") {
		return peers{}, false
	}
	p = peers{starter: s, nodes: env.number(s.count...)}
	index, listed := env.setOf(s.index...), s.listed(env)
	if p.nodes < 1 {
		if p.nodes = Unknown; len(listed) > 0 {
			p.nodes = len(listed)
		}
	}
	above := func(name string) bool { return env.number(name) > s.first }
	lowest := func(name string) bool { return env.number(name) == s.first }
	switch {
	case p.nodes == 1 || s.name == "" && len(index) == 0:
		return peers{}, false
	case p.nodes > 1 || slices.ContainsFunc(index, above):
		p.certain = true
	case s.common || !slices.ContainsFunc(index, lowest):
		return peers{}, false
	}
	count := env.first(s.count...)
	if count == "" && len(listed) > 0 {
		count = s.hosts
	}
	for _, name := range append(index, env.setOf(count)...) {
		value := "=" + env[name]
		if name == s.hosts && len(value) > maxShown {
			value = " with " + itoa(p.nodes) + " nodes"
		}
		p.set = append(p.set, name+value)
	}
	if len(listed) > 0 {
		p.host = listed[0]
	} else {
		p.host = env[s.master] // "" without a name
	}
	if p.host == "localhost" || strings.HasPrefix(p.host, "127.") || p.host == "::1" {
		p.host = ""
	}
	return p, true
}

// listed are the nodes that the starter lists: separated by commas or semicolons, or in JSON.
func (s starter) listed(env Env) []string {
	list := env[s.hosts]
	if s.cluster {
		list = clusterOf(list)
	}
	hosts := strings.FieldsFunc(list, func(c rune) bool {
		return strings.ContainsRune(`,;[]"`, c) || c <= ' '
	})
	for i, host := range hosts {
		if name, _, port := strings.Cut(host, ":"); port && strings.Count(host, ":") == 1 {
			hosts[i] = name
		}
	}
	return hosts
}

// clusterOf returns the addresses in a TF_CONFIG, {"cluster": {"worker": ["a:1", "b:1"]}}, with
// commas between them: all that is in lists of the object "cluster".
func clusterOf(config string) (list string) {
	_, cluster, _ := strings.Cut(config, `"cluster"`)
	cluster, _, _ = strings.Cut(cluster, "}")
	for found := true; found; {
		var addresses string
		_, cluster, found = strings.Cut(cluster, "[")
		addresses, cluster, _ = strings.Cut(cluster, "]")
		list += addresses + ","
	}
	return list
}

// hint is what to write for one job of all processes, and for a job of this one.
func (p peers) hint() string {
	nodes, host := "N", "HOST"
	if p.nodes > 1 {
		nodes = itoa(p.nodes)
	}
	if p.host != "" {
		host = p.host
	}
	say := p.instead
	if say == "" {
		say = "for one job: rdzv exec --nodes " + nodes + " --store " + host +
			" -- PROGRAM, the same on each node"
	}
	return say + "; if this process is meant alone: --nodes 1 or --launcher none"
}

// says is "NODE_RANK=1 says", or "PBS_NODENUM=1 and PBS_VNODENUM=8 (pbsdsh) say".
func (p peers) says() string {
	text, verb := strings.Join(p.set, " and "), " say"
	if len(p.set) == 1 {
		verb = " says"
	}
	if p.name != "" {
		text += " (" + p.name + ")"
	}
	return text + verb
}

// are is "NODE_RANK=0 is", or "PBS_NODENUM=0 and PBS_VNODENUM=0 are".
func (p peers) are() string {
	if len(p.set) == 1 {
		return p.set[0] + " is"
	}
	return strings.Join(p.set, " and ") + " are"
}

// Doubt returns an *Error that says what to write, if variables leave it open whether this process,
// which no launcher has started, is one of several; nil if they do not.
func (p Placement) Doubt() error {
	if len(p.peers.set) == 0 || p.peers.certain {
		return nil
	}
	return &Error{
		Text: "running a job of one node: " + p.peers.are() + " set, but not how many there are",
		Hint: p.peers.hint(),
	}
}
