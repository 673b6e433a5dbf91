package envmap

import (
	"strings"
	"testing"

	"rdzv/internal/pagetest"
)

// meanings are what the reference says about the variables of a worker, in their order there.
var meanings = [][2]string{
	{"RANK", "rank among all workers; with one worker per task, that of the launcher"},
	{"WORLD_SIZE", "number of workers of the job"},
	{"LOCAL_RANK", "rank among the workers of this node"},
	{"LOCAL_WORLD_SIZE", "number of workers of this node"},
	{"NODE_RANK", "rank of this node; 0 is that of rank 0's node"},
	{"GROUP_RANK", "NODE_RANK"},
	{"GROUP_WORLD_SIZE", "number of nodes"},
	{"ROLE_RANK", "RANK"},
	{"ROLE_WORLD_SIZE", "WORLD_SIZE"},
	{"ROLE_NAME", "as torchrun sets it"},
	{"MASTER_ADDR", "an address of rank 0's node"},
	{"MASTER_PORT", "a port that rank 0's agent reserves; each attempt has another one"},
	{"TORCHELASTIC_RUN_ID", "name of the job"},
	{"TORCHELASTIC_RESTART_COUNT", "how often the workers were restarted"},
	{"TORCHELASTIC_MAX_RESTARTS", "`--max-restarts`"},
	{"TORCHELASTIC_USE_AGENT_STORE", "rank 0 serves torch's store itself"},
	{"TORCHELASTIC_ERROR_FILE", "where torch's `@record` writes the exception"},
	{"RDZV_RUN_ID", "name of the job"},
	{"RDZV_ATTEMPT", "how often the workers were restarted"},
	{"RDZV_DETECTED", "the launcher that was recognised"},
	{"RDZV_DEVICE_INDEX", "index of this worker's device among those that it sees"},
	{"GLOO_SOCKET_IFNAME", "the network interface through which nodes reach each other"},
	{"TP_SOCKET_IFNAME", "as GLOO_SOCKET_IFNAME"},
	{"NCCL_SOCKET_IFNAME", "the same with `=` (exactly this name), in jobs of several nodes"},
	{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "errors of NCCL end the process"},
	{"PYTHONFAULTHANDLER", "Python prints its stacks before it is killed"},
	{"USE_LIBUV", "set if torch was built without libuv, see below"},
	{"OMP_NUM_THREADS", "number of cores that this worker may use"},
	{"GPU_PER_NODE", "number of GPUs, if there are any"},
}

// The reference of the environment has each variable that TorchChanges sets, with the value of a
// worker that needs all of them, and whether a value of the user's is replaced.
func TestGeneratedVariables(t *testing.T) {
	set := changes(t, Env{}, second, TorchOptions{})
	listed := map[string]bool{}
	page := "| variable | example | yours | meaning |\n|---|---|---|---|\n"
	for _, row := range meanings {
		name := row[0]
		listed[name] = true
		if !set.sets(name) {
			t.Errorf("TorchChanges does not set %s", name)
			continue
		}
		yours := "replaced"
		if !changes(t, Env{name: "x"}, second, TorchOptions{}).sets(name) {
			yours = "kept"
		}
		cells := []string{name, "`" + set.value(name) + "`", yours, row[1]}
		page += "| " + strings.Join(cells, " | ") + " |\n"
	}
	for _, kv := range set.Set {
		if !listed[kv.Name] {
			t.Errorf("the reference does not have %s", kv.Name)
		}
	}
	pagetest.Part(t, "../docs/reference/environment.md", "workers", page)
}
