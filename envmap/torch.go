package envmap

import (
	"slices"
	"strings"
)

// TorchOptions select how a worker's environment is made.
type TorchOptions struct {
	// Device is how the worker gets its device; "" is DeviceIndex.
	Device DeviceMode
	// Set holds NAME=TEMPLATE entries (see Fields), which override everything else.
	Set []string
	// AsOpenMPI also sets OMPI_COMM_WORLD_RANK, _SIZE and so on, for programs that read them.
	AsOpenMPI bool
	// StripLauncher removes the launcher's rank variables. It must be set if the agent has several
	// workers, none of which is the launcher's task: an MPI library in a worker then starts as a
	// singleton instead of failing.
	StripLauncher bool
}

// Torch returns the complete environment of a worker, which is environ with the changes of
// [TorchChanges] applied, and notes for the user. What was replaced is noted for rank 0 only, what
// will not work for the last worker of each node only: if there are too few devices, it has none of
// its own.
func Torch(environ []string, id Identity, o TorchOptions) ([]string, []string, error) {
	changes, err := TorchChanges(ParseEnv(environ), id, o)
	if err != nil {
		return nil, nil, err
	}
	var notes []string
	if id.Rank == 0 {
		notes = changes.replacements()
	}
	if id.LocalRank == id.LocalWorldSize-1 {
		notes = append(notes, changes.Notes...)
	}
	return changes.Apply(environ), notes, nil
}

// TorchChanges returns the changes that make a worker's environment from the agent's:
//
//   - the worker's identity, under torchrun's names. It replaces existing variables.
//   - settings that torch and its libraries read. Existing values are kept.
//   - the variables of o.Set, which override settings. They must not be those of the identity.
//
// Variables that begin with RDZV_ belong to the agent (flags and secrets) and are removed, except
// for those set here. An error is an *Error: an impossible identity, device mode or template.
func TorchChanges(env Env, id Identity, o TorchOptions) (Changes, error) {
	if err := id.check(); err != nil {
		return Changes{}, err
	}
	device, err := assign(id, o.Device)
	if err != nil {
		return Changes{}, err
	}
	variables, err := requested(o.Set, id, device)
	if err != nil {
		return Changes{}, err
	}
	w := &worker{env: env, Changes: Changes{Notes: device.notes}}
	w.identity(id, device)
	if err := w.checkFree(variables); err != nil {
		return Changes{}, err
	}
	w.settings(id, !o.StripLauncher)
	w.put(device.set...)
	if o.AsOpenMPI {
		// As under mpirun, NODE_RANK is the local rank.
		w.put(
			KV{"OMPI_COMM_WORLD_RANK", itoa(id.Rank)},
			KV{"OMPI_COMM_WORLD_SIZE", itoa(id.WorldSize)},
			KV{"OMPI_COMM_WORLD_LOCAL_RANK", itoa(id.LocalRank)},
			KV{"OMPI_COMM_WORLD_LOCAL_SIZE", itoa(id.LocalWorldSize)},
			KV{"OMPI_COMM_WORLD_NODE_RANK", itoa(id.LocalRank)},
		)
	}
	w.put(variables...)
	w.remove(o.StripLauncher)
	return w.Changes, nil
}

// identity sets the worker's identity and remembers different values of the user's. Launchers that
// set these variables themselves mean something else by the ranks, such as pods; where rank 0 would
// listen is remembered under them too, because more may depend on it.
func (w *worker) identity(id Identity, device device) {
	identity := []KV{
		{"RANK", itoa(id.Rank)}, {"WORLD_SIZE", itoa(id.WorldSize)},
		{"LOCAL_RANK", itoa(device.localRank)}, {"LOCAL_WORLD_SIZE", itoa(id.LocalWorldSize)},
		{"GROUP_RANK", itoa(id.NodeRank)}, {"GROUP_WORLD_SIZE", itoa(id.Nodes)},
		{"NODE_RANK", itoa(id.NodeRank)}, {"ROLE_RANK", itoa(id.Rank)},
		{"ROLE_WORLD_SIZE", itoa(id.WorldSize)}, {"ROLE_NAME", "default"},
		{"MASTER_ADDR", id.MasterAddr}, {"MASTER_PORT", itoa(id.MasterPort)},

		// With these, torch, Lightning and others use RANK instead of detecting the launcher:
		// Lightning reads SLURM_NTASKS and SLURM_PROCID before RANK unless TORCHELASTIC_RUN_ID is
		// set. USE_AGENT_STORE is False because rank 0 serves MASTER_PORT; with True every rank
		// would be a client, and hang.
		{"TORCHELASTIC_RUN_ID", id.RunID},
		{"TORCHELASTIC_RESTART_COUNT", itoa(id.Attempt)},
		{"TORCHELASTIC_MAX_RESTARTS", itoa(id.Restarts)},
		{"TORCHELASTIC_USE_AGENT_STORE", "False"},
	}
	if id.ErrorFile != "" {
		identity = append(identity, KV{"TORCHELASTIC_ERROR_FILE", id.ErrorFile})
	}
	w.put(identity...)
	if slices.Contains([]Launcher{Torchrun, Kubeflow, RunPod, UserSet}, id.Launcher) {
		isRank := func(kv KV) bool { return !strings.HasPrefix(kv.Name, "MASTER_") }
		identity = slices.DeleteFunc(identity, isRank)
	}
	w.noteReplaced(identity...)
	w.put(KV{"RDZV_RUN_ID", id.RunID}, KV{"RDZV_ATTEMPT", itoa(id.Attempt)})
	w.put(KV{"RDZV_DETECTED", string(id.Launcher)})
	if device.index != Unknown {
		index := KV{"RDZV_DEVICE_INDEX", itoa(device.index)}
		w.put(index)
		w.noteReplaced(index)
	}
}

// checkFree rejects variables of the user that belong to the identity. Some of those are set only
// if there is a device, or a place for the file.
func (w *worker) checkFree(variables []KV) error {
	for _, kv := range variables {
		sometimes := kv.Name == "RDZV_DEVICE_INDEX" || kv.Name == "TORCHELASTIC_ERROR_FILE"
		if w.sets(kv.Name) || sometimes {
			return &Error{
				Text: "cannot set " + kv.Name + ": rdzv exec itself sets it for every worker",
				Hint: "--set is for variables under other names",
			}
		}
	}
	return nil
}

// settings sets variables whose existing values are kept. isTask says that the worker is the task
// that the launcher started.
func (w *worker) settings(id Identity, isTask bool) {
	if id.Interface != "" {
		w.setDefault("GLOO_SOCKET_IFNAME", id.Interface)
		w.setDefault("TP_SOCKET_IFNAME", id.Interface)
		if id.Nodes > 1 && !id.NCCLConfigured {
			// "=" selects exactly this name; without it NCCL treats eth1 as a prefix, which eth10
			// matches too.
			w.setDefault("NCCL_SOCKET_IFNAME", "="+id.Interface)
		}
	}
	w.setDefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1", "NCCL_ASYNC_ERROR_HANDLING")
	w.setDefault("PYTHONFAULTHANDLER", "1")
	if id.NoLibuv {
		w.setDefault("USE_LIBUV", "0")
	}
	if id.Threads > 0 {
		w.setDefault("OMP_NUM_THREADS", itoa(id.Threads))
	}
	if id.GPUs > 0 {
		w.setDefault("GPU_PER_NODE", itoa(id.GPUs))
	}
	w.diagnostics(id)
	if id.Launcher == OpenMPI4 && isTask {
		// With this, a task of Open MPI 4 can run several MPI programs in sequence, for example
		// from a shell script: PMIx's shared memory accepts a rank only once ("getting local rank
		// failed"), its hash table any number of times (measured: 4.1.4). Open MPI 5 fails more
		// often with it.
		w.setDefault("PMIX_MCA_gds", "hash")
	}
}

// diagnostics sets what helps to find the reason of a hang in NCCL. Older versions of torch know
// the variables under the other names.
func (w *worker) diagnostics(id Identity) {
	if id.RASAddr != "" {
		w.setDefault("NCCL_RAS_ADDR", id.RASAddr)
	}
	if id.Recorder.Dump != "" {
		w.setDefault("TORCH_FR_BUFFER_SIZE", "2000", "TORCH_NCCL_TRACE_BUFFER_SIZE")
		w.setDefault("TORCH_NCCL_DUMP_ON_TIMEOUT", "1")
		w.setDefault("TORCH_FR_DUMP_TEMP_FILE", id.Recorder.Dump, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
	}
	if id.Recorder.Pipe != "" {
		w.setDefault("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", id.Recorder.Pipe)
	}
}
