package envmap

import (
	"slices"
	"strconv"
	"strings"
)

// TorchOptions says how a worker's environment is made.
type TorchOptions struct {
	// Device is how the worker gets its device; "" is DeviceIndex.
	Device DeviceMode
	// Set holds NAME=TEMPLATE entries, see Fields. They have the last word.
	Set []string
	// AsOpenMPI sets OMPI_COMM_WORLD_RANK and its like too, for programs that read them.
	AsOpenMPI bool
	// StripLauncher says that the agent has several workers, none of which is the launcher's task: the launcher's rank
	// variables are taken away, so that an MPI library in a worker starts alone instead of failing.
	StripLauncher bool
}

// KV is a variable.
type KV struct{ Name, Value string }

// Changes is what makes a worker's environment of the agent's.
type Changes struct {
	Set   []KV     // in the order in which they are printed
	Unset []string // variables that are there and must go, sorted
	Notes []string // sentences for the user: what was replaced, and what will not work
	Kept  []string // settings that the user has made himself, and that stay
}

// Torch returns the whole environment of a worker: environ with the changes of [TorchChanges] made, and their notes.
func Torch(environ []string, id Identity, o TorchOptions) ([]string, []string, error) {
	changes, err := TorchChanges(ParseEnv(environ), id, o)
	if err != nil {
		return nil, nil, err
	}
	return changes.Apply(environ), changes.Notes, nil
}

// Apply returns environ with the changes made: what stays keeps its place, what is set follows.
func (c Changes) Apply(environ []string) []string {
	gone := make(map[string]bool, len(c.Set)+len(c.Unset))
	for _, name := range c.Unset {
		gone[name] = true
	}
	for _, kv := range c.Set {
		gone[kv.Name] = true
	}
	result := make([]string, 0, len(environ)+len(c.Set))
	for _, entry := range environ {
		if name, _, ok := strings.Cut(entry, "="); ok && name != "" && !gone[name] {
			result = append(result, entry)
		}
	}
	for _, kv := range c.Set {
		result = append(result, kv.Name+"="+kv.Value)
	}
	return result
}

// TorchChanges returns what a worker's environment has besides, or instead of, the agent's:
//
//   - who it is, under torchrun's names. These replace whatever is there; replacing another value is noted.
//   - settings that torch and its libraries read. A value that is there stays.
//   - what is asked for in o.Set, over both.
//
// Variables that begin with RDZV_ are the agent's (flags and secrets) and go, but for those set here.
func TorchChanges(env Env, id Identity, o TorchOptions) (Changes, error) {
	if err := id.check(); err != nil {
		return Changes{}, err
	}
	device, err := assign(id, o.Device)
	if err != nil {
		return Changes{}, err
	}
	w := &worker{env: env, set: map[string]int{}, launchers: id.Launcher == Torchrun || id.Launcher == Kubeflow}
	w.strip(o.StripLauncher)
	w.identity(id, device)
	w.settings(id)
	if id.Launcher == OpenMPI4 && !o.StripLauncher {
		// This lets a task of Open MPI 4 run one MPI program after another, as a worker that is a shell script does:
		// PMIx's shared memory takes a rank once ("getting local rank failed"), its hash table any number of times
		// (measured, 4.1.4). Open MPI 5 is the worse for it.
		w.offer("PMIX_MCA_gds", "hash")
	}
	w.notes = append(w.notes, device.notes...)
	for _, kv := range device.set {
		w.put(kv.Name, kv.Value)
	}
	if o.AsOpenMPI {
		w.openMPI(id)
	}
	if err := w.templates(id, device, o.Set); err != nil {
		return Changes{}, err
	}
	slices.Sort(w.unset)
	w.unset = slices.DeleteFunc(w.unset, func(name string) bool { _, set := w.set[name]; return set })
	return Changes{Set: w.vars, Unset: w.unset, Notes: w.notes, Kept: w.kept}, nil
}

// worker collects the changes.
type worker struct {
	env   Env
	vars  []KV
	set   map[string]int // name to index in vars
	unset []string
	notes []string
	kept  []string

	launchers bool // the identity variables in env are the launcher's
}

func (w *worker) put(name, value string) {
	if i, ok := w.set[name]; ok {
		w.vars[i].Value = value
		return
	}
	w.set[name] = len(w.vars)
	w.vars = append(w.vars, KV{name, value})
}

// replace sets an identity variable and says so if the user had another value there. torchrun and Kubeflow set these
// themselves: there it is the launcher's value, and no surprise.
func (w *worker) replace(name, value string) {
	if old, ok := w.env[name]; ok && old != value && !w.launchers {
		w.notes = append(w.notes, name+"="+old+" in the environment is replaced by "+value)
	}
	w.put(name, value)
}

// offer sets a variable that the user has not set, not under any of its names.
func (w *worker) offer(name, value string, names ...string) {
	if _, there := w.env[name]; there {
		w.kept = append(w.kept, name)
	} else if i := slices.IndexFunc(names, w.env.has); i >= 0 {
		w.kept = append(w.kept, names[i])
	} else {
		w.put(name, value)
	}
}

func (w *worker) identity(id Identity, device device) {
	for _, v := range []struct {
		name  string
		value int
	}{
		{"RANK", id.Rank}, {"WORLD_SIZE", id.WorldSize},
		{"LOCAL_RANK", device.localRank}, {"LOCAL_WORLD_SIZE", id.LocalWorldSize},
		{"GROUP_RANK", id.NodeRank}, {"GROUP_WORLD_SIZE", id.Nodes}, {"NODE_RANK", id.NodeRank},
		{"ROLE_RANK", id.Rank}, {"ROLE_WORLD_SIZE", id.WorldSize},
	} {
		w.replace(v.name, itoa(v.value))
	}
	w.replace("ROLE_NAME", "default")
	w.replace("MASTER_ADDR", id.MasterAddr)
	w.replace("MASTER_PORT", itoa(id.MasterPort))

	// These make torch, Lightning and others believe RANK rather than their own guess at the launcher: Lightning reads
	// SLURM_NTASKS and SLURM_PROCID before RANK unless TORCHELASTIC_RUN_ID is set. USE_AGENT_STORE is False because
	// nobody listens at MASTER_PORT before rank 0 does; with True every rank would be a client, and hang.
	w.replace("TORCHELASTIC_RUN_ID", id.RunID)
	w.replace("TORCHELASTIC_RESTART_COUNT", itoa(id.Attempt))
	w.replace("TORCHELASTIC_MAX_RESTARTS", itoa(id.Restarts))
	w.replace("TORCHELASTIC_USE_AGENT_STORE", "False")
	if id.ErrorFile != "" {
		w.replace("TORCHELASTIC_ERROR_FILE", id.ErrorFile)
	}

	w.put("RDZV_RUN_ID", id.RunID)
	w.put("RDZV_ATTEMPT", itoa(id.Attempt))
	w.put("RDZV_DETECTED", string(id.Launcher))
	if device.index != Unknown {
		w.put("RDZV_DEVICE_INDEX", itoa(device.index))
	}
}

// settings offers what the user may set otherwise.
func (w *worker) settings(id Identity) {
	if id.Interface != "" {
		w.offer("GLOO_SOCKET_IFNAME", id.Interface)
		w.offer("TP_SOCKET_IFNAME", id.Interface)
		if id.Nodes > 1 && !id.NCCLConfigured {
			// "=" asks for this very name; without it NCCL takes eth1 for a prefix, and eth10 too.
			w.offer("NCCL_SOCKET_IFNAME", "="+id.Interface)
		}
	}
	w.offer("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1", "NCCL_ASYNC_ERROR_HANDLING")
	w.offer("PYTHONFAULTHANDLER", "1")
	if id.Threads > 0 {
		w.offer("OMP_NUM_THREADS", itoa(id.Threads))
	}
	if id.GPUs > 0 {
		w.offer("GPU_PER_NODE", itoa(id.GPUs))
	}
}

// openMPI sets the variables that mpirun gives its ranks. NODE_RANK is, as there, the local rank.
func (w *worker) openMPI(id Identity) {
	w.put("OMPI_COMM_WORLD_RANK", itoa(id.Rank))
	w.put("OMPI_COMM_WORLD_SIZE", itoa(id.WorldSize))
	w.put("OMPI_COMM_WORLD_LOCAL_RANK", itoa(id.LocalRank))
	w.put("OMPI_COMM_WORLD_LOCAL_SIZE", itoa(id.LocalWorldSize))
	w.put("OMPI_COMM_WORLD_NODE_RANK", itoa(id.LocalRank))
}

func itoa(n int) string { return strconv.Itoa(n) }
