package envmap

import (
	"slices"
	"strings"
)

// worker collects the changes.
type worker struct {
	env   Env
	vars  []KV
	index map[string]int // of each name in vars
	unset []string
	notes []string
	kept  []string

	replaced     []KV // with their old values
	fromLauncher bool // the identity variables in env were set by the launcher
}

func (w *worker) put(name, value string) {
	if i, ok := w.index[name]; ok {
		w.vars[i].Value = value
		return
	}
	w.index[name] = len(w.vars)
	w.vars = append(w.vars, KV{name, value})
}

// replace sets an identity variable and remembers a different value of the user's. torchrun and
// Kubeflow set these variables themselves.
func (w *worker) replace(name, value string) {
	if old, ok := w.env[name]; ok && old != value && !w.fromLauncher {
		w.replaced = append(w.replaced, KV{name, old})
	}
	w.put(name, value)
}

// setDefault sets a variable unless the environment has it, under this name or one of its others.
func (w *worker) setDefault(name, value string, others ...string) {
	if _, exists := w.env[name]; exists {
		w.kept = append(w.kept, name)
	} else if i := slices.IndexFunc(others, w.env.has); i >= 0 {
		w.kept = append(w.kept, others[i])
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

	// With these, torch, Lightning and others use RANK instead of detecting the launcher:
	// Lightning reads SLURM_NTASKS and SLURM_PROCID before RANK unless TORCHELASTIC_RUN_ID is set.
	// USE_AGENT_STORE is False because rank 0 serves MASTER_PORT; with True every rank would be a
	// client, and hang.
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

// settings sets variables whose existing values are kept.
func (w *worker) settings(id Identity) {
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
	if id.Threads > 0 {
		w.setDefault("OMP_NUM_THREADS", itoa(id.Threads))
	}
	if id.GPUs > 0 {
		w.setDefault("GPU_PER_NODE", itoa(id.GPUs))
	}
}

// openMPI sets the variables that mpirun sets in its ranks. As under mpirun, NODE_RANK is the local
// rank.
func (w *worker) openMPI(id Identity) {
	w.put("OMPI_COMM_WORLD_RANK", itoa(id.Rank))
	w.put("OMPI_COMM_WORLD_SIZE", itoa(id.WorldSize))
	w.put("OMPI_COMM_WORLD_LOCAL_RANK", itoa(id.LocalRank))
	w.put("OMPI_COMM_WORLD_LOCAL_SIZE", itoa(id.LocalWorldSize))
	w.put("OMPI_COMM_WORLD_NODE_RANK", itoa(id.LocalRank))
}

// strip removes variables that a worker must not have: the agent's own, and, if launcher is set,
// the launcher's rank variables.
func (w *worker) strip(launcher bool) {
	for name := range w.env {
		if strings.HasPrefix(name, "RDZV_") || launcher && isTaskVariable(name) {
			w.unset = append(w.unset, name)
		}
	}
}

// taskVariables tell a process that it is one task of a launcher. A worker that is not that task
// must not have them (docs/launchers.md, section i): with Open MPI's and Hydra's, MPI_Init of the
// second child fails or hangs; Open MPI refuses to start with a SLURM_STEP_ID and without a PMI;
// and accelerate reads PMI_SIZE as the world size.
var taskVariables = []string{
	"MPI_LOCALRANKID", "MPI_LOCALNRANKS", "HYDI_CONTROL_FD",
	"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS",
	"SLURM_TASK_PID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS",
	"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE",
	"PALS_RANKID", "PALS_LOCAL_RANKID",
	"FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID",
}

var taskPrefixes = []string{"OMPI_", "PMIX_", "PRTE_", "PMI_", "MV2_COMM_WORLD_", "JSM_NAMESPACE_"}

func isTaskVariable(name string) bool {
	if strings.HasPrefix(name, "OMPI_ALLOW_RUN_AS_ROOT") {
		return false // a setting of the user
	}
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.Contains(taskVariables, name) || slices.ContainsFunc(taskPrefixes, hasPrefix)
}
