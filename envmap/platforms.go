package envmap

import (
	"slices"
	"strings"
)

// A platform starts one process per node, in which rdzv exec is the agent, and tells it by
// variables which node of how many it is on.
type platform struct {
	launcher Launcher
	name     string         // for people
	only     func(Env) bool // what else identifies it; nil if its variables do
	index    []string       // node rank; the first that is set
	count    string         // nodes; "" if the platform does not set it
	ranged   bool           // the count may be torchrun's MIN:MAX
	master   []string       // rank 0's node; of a list its first entry
	pod      string         // how this pod's host name ends, # being the index: names rank 0's pod
	workers  string         // workers per node; 0 if it has no GPUs
	find     func(*reader, *platform)
	noCount  string // what to do about an index without a count
	noIndex  string // what to do about a count without an index
	token    string // how all nodes get the same RDZV_TOKEN
	prefix   string // of the variables that it sets on each node
}

// How the pods of a job get the same RDZV_TOKEN: the UID of an object, which is a label of theirs,
// or a secret.
const (
	labelOfPods = "in the pod template: {name: RDZV_TOKEN, " +
		`valueFrom: {fieldRef: {fieldPath: "metadata.labels['`
	endOfLabel   = `']"}}}`
	secretOfPods = "kubectl create secret generic rdzv --from-literal=token=$(rdzv token)\n" +
		"in the pod template: {name: RDZV_TOKEN, valueFrom: {secretKeyRef: {name: rdzv, key: token}}}"
)

// platforms are in the order of detection: a TrainJob's pods are those of a JobSet, and a JobSet's
// those of an Indexed Job, which therefore come last; Volcano's plugin pytorch comes with its
// plugin svc. All is documented, none measured. The source is beside each row.
var platforms = []platform{
	// kubeflow/training-operator: pkg/controller.v1/pytorch/envvar.go. It sets torchrun's variables
	// beside RANK, WORLD_SIZE and MASTER_ADDR. In older versions that is localhost in rank 0's pod.
	{launcher: Kubeflow, name: "PyTorchJob", only: petIsPyTorchJob, token: secretOfPods,
		index: []string{"PET_NODE_RANK"}, count: "PET_NNODES", ranged: true,
		master: []string{"PET_MASTER_ADDR", "MASTER_ADDR"}, workers: "PET_NPROC_PER_NODE"},
	// kubeflow/trainer 8c0f5059: pkg/runtime/framework/plugins/torch/torch.go, pkg/constants. The
	// workers are a number or auto.
	{launcher: Kubeflow, name: "Kubeflow TrainJob", index: []string{"PET_NODE_RANK"},
		count: "PET_NNODES", ranged: true, master: []string{"PET_MASTER_ADDR", "MASTER_ADDR"},
		workers: "PET_NPROC_PER_NODE", token: labelOfPods + "jobset.sigs.k8s.io/jobset-uid" + endOfLabel},
	// A PyTorchJob before torchrun's variables. Volcano's plugin pytorch sets the same:
	// volcano-sh/volcano ed72c7c8, job/plugins/distributed-framework/pytorch/pytorch.go.
	{launcher: Kubeflow, name: "PyTorchJob", only: rankIsPod, index: []string{"RANK"},
		count: "WORLD_SIZE", master: []string{"MASTER_ADDR"}, token: secretOfPods},
	// kubernetes-sigs/lws 060ab4da: pkg/utils/pod/pod_utils.go, AddLWSVariables. The index is new
	// in 0.6.
	{launcher: LWS, name: "LeaderWorkerSet", index: []string{"LWS_WORKER_INDEX"},
		count: "LWS_GROUP_SIZE", master: []string{"LWS_LEADER_ADDRESS"},
		token: secretOfPods, prefix: "LWS_",
		noIndex: "LeaderWorkerSet sets it since 0.6; before that set it by the downward API from " +
			"metadata.labels['leaderworkerset.sigs.k8s.io/worker-index']"},
	// volcano-sh/volcano ed72c7c8: job/plugins/env/env.go sets the index within the pod's task,
	// job/plugins/svc/svc.go for each task NAME of the job VC_NAME_NUM and VC_NAME_HOSTS, unless
	// --inject-hosts-env=false, and the host name JOB-NAME-INDEX.
	{launcher: Volcano, name: "Volcano job", index: []string{"VC_TASK_INDEX"}, pod: "-#",
		find: findVolcanoTask, token: secretOfPods, prefix: "VC_"},
	// skypilot-org/skypilot: docs/source/running-jobs/environment-variables.rst, also for the token;
	// sky/backends/task_codegen.py. On Slurm the task is also a task of a step
	// (sky/skylet/executor/slurm.py).
	{launcher: SkyPilot, name: "SkyPilot task", index: []string{"SKYPILOT_NODE_RANK"},
		count: "SKYPILOT_NUM_NODES", master: []string{"SKYPILOT_NODE_IPS"},
		workers: "SKYPILOT_NUM_GPUS_PER_NODE", prefix: "SKYPILOT_",
		token: "in the task: secrets: {RDZV_TOKEN: null}\n" +
			"export RDZV_TOKEN=$(rdzv token); sky launch --secret RDZV_TOKEN ..."},
	// dstackai/dstack 511c318c: runner/internal/runner/executor/executor.go, execJob. Its token:
	// dstack.ai/docs/concepts/secrets.
	{launcher: Dstack, name: "dstack task", index: []string{"DSTACK_NODE_RANK"},
		count: "DSTACK_NODES_NUM", master: []string{"DSTACK_MASTER_NODE_IP"},
		workers: "DSTACK_GPUS_PER_NODE", prefix: "DSTACK_",
		token: "dstack secret set rdzv_token $(rdzv token)\n" +
			"in the configuration: env: [\"RDZV_TOKEN=${{ secrets.rdzv_token }}\"]"},
	// allenai/beaker-gantry: gantry/commands/run.py (the leader is the first replica, and named
	// with --leader-selection only), gantry/entrypoint.sh. The server's source is not public. Its
	// token: the experiment specification (envVars, secret).
	{launcher: Beaker, name: "Beaker task", index: []string{"BEAKER_REPLICA_RANK"},
		count: "BEAKER_REPLICA_COUNT", master: []string{"BEAKER_LEADER_REPLICA_HOSTNAME"},
		workers: "BEAKER_ASSIGNED_GPU_COUNT", prefix: "BEAKER_",
		token: "beaker secret write RDZV_TOKEN $(rdzv token)\n" +
			"in the specification: envVars: [{name: RDZV_TOKEN, secret: RDZV_TOKEN}]"},
	// docs.runpod.io/instant-clusters/configuration. WORLD_SIZE counts GPUs, and there is no RANK.
	// RUNPOD_POD_ID and others: docs.runpod.io/pods/templates/environment-variables. Its token:
	// pods/templates/secrets.
	{launcher: RunPod, name: "RunPod cluster", only: onRunPod, index: []string{"NODE_RANK"},
		count: "NUM_NODES", master: []string{"PRIMARY_ADDR", "MASTER_ADDR"},
		workers: "NUM_TRAINERS", prefix: "RUNPOD_",
		token: "a secret rdzv_token with the output of rdzv token, and in the template the variable " +
			"RDZV_TOKEN={{ RUNPOD_SECRET_rdzv_token }}"},
	// kubernetes-sigs/jobset 08dfbdfd: api/jobset/v1alpha2/jobset_types.go. JobSet sets no
	// variables: these are for its annotations job-global-index and coordinator, by the downward
	// API. Its UID is a label of Jobs and pods, also of a TrainJob's: v0.10.1,
	// pkg/controllers/jobset_controller.go, labelAndAnnotateObject.
	{launcher: JobSet, name: "JobSet", only: anyJobSet,
		index:  []string{"JOBSET_JOB_GLOBAL_INDEX", "JOB_COMPLETION_INDEX"},
		master: []string{"JOBSET_COORDINATOR"}, find: findJobSetPod,
		noCount: `in the pod template: {name: RDZV_NODES, value: "N"}, N being the number of pods`,
		token:   labelOfPods + "jobset.sigs.k8s.io/jobset-uid" + endOfLabel, prefix: "JOBSET_"},
	// kubernetes.io: concepts/workloads/controllers/job (Indexed), and tasks/job/
	// job-with-pod-to-pod-communication: the host name is JOB-INDEX. The label controller-uid is new
	// in 1.27: reference/labels-annotations-taints.
	{launcher: Kubernetes, name: "Indexed Job", index: []string{"JOB_COMPLETION_INDEX"}, pod: "-#",
		noCount: `in the pod template: {name: RDZV_NODES, value: "N"}, ` +
			"N being the Job's completions",
		token: labelOfPods + "batch.kubernetes.io/controller-uid" + endOfLabel},
}

// match returns the variables by which the platform is recognised. A count of 1 without an index
// says nothing: a process of its own needs none.
func (pl platform) match(env Env) []string {
	if pl.only != nil && !pl.only(env) {
		return nil
	}
	return pl.set(env)
}

func (pl platform) set(env Env) []string {
	several := false
	if pl.find != nil {
		r := newReader(env, pl.launcher, nil)
		pl.find(r, &pl)
		several = r.err != nil
	}
	names := pl.index
	if env[pl.count] != "1" || several {
		names = append(names[:len(names):len(names)], pl.count)
	}
	return env.setOf(names...)
}

// read takes the placement of a node.
func (pl platform) read(r *reader) {
	r.p.Platform = pl.name
	if pl.find != nil {
		pl.find(r, &pl)
	}
	pl.readCount(r)
	if r.hint = pl.noIndex; r.hint == "" {
		r.hint = "set " + pl.index[0] + " on each node; " +
			"--nodes 1 makes this process a job of its own"
	}
	r.require("rank", pl.index...)
	name := r.env.first(pl.master...)
	if list := strings.FieldsFunc(r.env[name], isListSeparator); len(list) > 0 {
		r.setMaster(r.common(list[0]), name)
	}
	if workers := r.env[pl.workers]; workers != "0" {
		r.p.PerNode = workers
	}
	pl.inferNode(&r.p)
	if r.p.Master == "" && pl.pod != "" {
		readFirstPod(r, pl.pod)
	}
}

func isListSeparator(c rune) bool { return c == ',' || c <= ' ' }

// readCount takes the number of nodes. What the platform sets counts, and --nodes otherwise.
func (pl platform) readCount(r *reader) {
	n := r.given.Nodes
	switch {
	case r.env.has(pl.count) && pl.ranged:
		readNodeRange(r)
	case r.env.has(pl.count):
		r.require("size", pl.count)
	case n > 0:
		r.p.set("size", n, "--nodes "+itoa(n))
	default:
		r.setUnknown("size", "the "+pl.name+" does not set it: give --nodes N")
		r.p.noCount = pl.noCount
	}
}

// inferNode sets what follows from one process per node.
func (pl platform) inferNode(p *Placement) {
	why := "one process per node of the " + pl.name
	p.infer("local rank", 0, why)
	p.infer("local size", 1, why)
	p.infer("node rank", p.Rank, why)
	p.infer("nodes", p.Size, why)
}

// isPlatform tells whether a launcher is one of the platforms.
func isPlatform(l Launcher) bool {
	return slices.ContainsFunc(platforms, func(pl platform) bool { return pl.launcher == l })
}

// TokenOn says how all nodes get the same RDZV_TOKEN on a platform, of which PlatformOf or a
// Placement has the name.
func TokenOn(platform string) string {
	for _, pl := range platforms {
		if pl.name == platform {
			return pl.token
		}
	}
	return ""
}

// Platforms are the launchers that are platforms.
func Platforms() (list []Launcher) {
	for _, pl := range platforms {
		if !slices.Contains(list, pl.launcher) {
			list = append(list, pl.launcher)
		}
	}
	return list
}

// PlatformOf returns the name of the platform on one of whose nodes this process runs, whether or
// not its placement is taken from the platform (see Placement.Platform); "" if there is none.
func PlatformOf(env Env) string {
	for _, pl := range platforms {
		if len(pl.match(env)) > 0 {
			return pl.name
		}
	}
	return ""
}

// isNodeIndex tells whether a variable is that by which a platform numbers its nodes.
func isNodeIndex(name string) bool {
	return slices.ContainsFunc(platforms, func(pl platform) bool {
		return slices.Contains(pl.index, name)
	})
}
