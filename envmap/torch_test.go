package envmap

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// second is rank 5 of 8: the second of four workers on the second of two nodes.
var second = Identity{
	Rank: 5, WorldSize: 8, LocalRank: 1, LocalWorldSize: 4, NodeRank: 1, Nodes: 2,
	MasterAddr: "10.0.0.1", MasterPort: 29601, RunID: "job-7", ErrorFile: "/run/e.json",
	Launcher: Slurm,
	NodeAddr: "10.0.0.2", Interface: "eth1", NoLibuv: true, Threads: 6, GPUs: 4,
	Visible: Devices{Vendor: "nvidia", Entries: ordinals(4), Known: true},
}

func TestTorchSetsEverything(t *testing.T) {
	environ, notes, err := Torch([]string{"PATH=/bin", "HOME=/home/user"}, second, TorchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(`PATH=/bin HOME=/home/user
		RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4
		GROUP_RANK=1 GROUP_WORLD_SIZE=2 NODE_RANK=1
		ROLE_RANK=5 ROLE_WORLD_SIZE=8 ROLE_NAME=default MASTER_ADDR=10.0.0.1 MASTER_PORT=29601
		TORCHELASTIC_RUN_ID=job-7 TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_MAX_RESTARTS=0
		TORCHELASTIC_USE_AGENT_STORE=False TORCHELASTIC_ERROR_FILE=/run/e.json
		RDZV_RUN_ID=job-7 RDZV_ATTEMPT=0 RDZV_DETECTED=slurm RDZV_DEVICE_INDEX=1
		GLOO_SOCKET_IFNAME=eth1 TP_SOCKET_IFNAME=eth1 NCCL_SOCKET_IFNAME==eth1
		TORCH_NCCL_ASYNC_ERROR_HANDLING=1 PYTHONFAULTHANDLER=1 USE_LIBUV=0 OMP_NUM_THREADS=6 GPU_PER_NODE=4`)
	if !slices.Equal(environ, want) {
		t.Errorf("got  %q\nwant %q", environ, want)
	}
	if len(notes) != 0 {
		t.Errorf("notes %q", notes)
	}
}

func TestTorchKeepsTheUsersSettings(t *testing.T) {
	env := ParseEnv(strings.Fields("GLOO_SOCKET_IFNAME=ib0 NCCL_SOCKET_IFNAME=ib " +
		"TP_SOCKET_IFNAME=ib0 NCCL_ASYNC_ERROR_HANDLING=0 PYTHONFAULTHANDLER= USE_LIBUV=1 " +
		"OMP_NUM_THREADS=3 GPU_PER_NODE=2"))
	c := changes(t, env, second, TorchOptions{})
	for name := range env {
		if c.sets(name) || slices.Contains(c.Unset, name) {
			t.Errorf("%s is not kept", name)
		}
	}
	if want := slices.Sorted(maps.Keys(env)); !slices.Equal(slices.Sorted(slices.Values(c.Kept)),
		want) {
		t.Errorf("kept %q, want %q", c.Kept, want)
	}
	if c.sets("TORCH_NCCL_ASYNC_ERROR_HANDLING") {
		t.Error("TORCH_NCCL_ASYNC_ERROR_HANDLING overrides the user's NCCL_ASYNC_ERROR_HANDLING")
	}
}

// What helps to find the reason of a hang is set if it is known, and what the user has set is kept,
// also under the name that older versions of torch know.
func TestTorchDiagnostics(t *testing.T) {
	id := second
	id.RASAddr, id.Recorder = "127.0.0.1:4000", Recorder{"/logs/trace_", "/logs/pipe_"}
	all := map[string]string{
		"NCCL_RAS_ADDR": "127.0.0.1:4000", "TORCH_FR_BUFFER_SIZE": "2000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
		"TORCH_FR_DUMP_TEMP_FILE": "/logs/trace_", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": "/logs/pipe_",
	}
	for _, kept := range append(slices.Sorted(maps.Keys(all)), "") {
		env := Env{}
		if kept != "" {
			env[kept] = ""
		}
		c := changes(t, env, id, TorchOptions{})
		for name, value := range all {
			if set := slices.Contains(c.Set, KV{name, value}); set == (name == kept) {
				t.Errorf("with %s of the user %s is set: %t", kept, name, set)
			}
		}
	}
	older := Env{"TORCH_NCCL_TRACE_BUFFER_SIZE": "20", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "/mine"}
	c := changes(t, older, id, TorchOptions{})
	if c.sets("TORCH_FR_BUFFER_SIZE") || c.sets("TORCH_FR_DUMP_TEMP_FILE") {
		t.Error("the variables of older versions of torch are overridden")
	}
	c = changes(t, Env{}, second, TorchOptions{})
	for name := range all {
		if c.sets(name) {
			t.Errorf("%s is set although nothing is known", name)
		}
	}
}

func TestTorchNotesReplacedIdentity(t *testing.T) {
	env := ParseEnv(strings.Fields("RANK=7 WORLD_SIZE=8 MASTER_ADDR=elsewhere " +
		"TORCHELASTIC_RUN_ID=old"))
	first := second
	first.Rank, first.LocalRank, first.NodeRank = 0, 0, 0
	c := changes(t, env, first, TorchOptions{})
	environ := []string{"RANK=7", "WORLD_SIZE=8", "MASTER_ADDR=elsewhere",
		"TORCHELASTIC_RUN_ID=old"}
	_, notes, err := Torch(environ, first, TorchOptions{})
	want := []string{"replacing variables of the environment: " +
		"RANK=7 by 0, MASTER_ADDR=elsewhere by 10.0.0.1, TORCHELASTIC_RUN_ID=old by job-7"}
	if err != nil || !slices.Equal(notes, want) {
		t.Errorf("notes %q, %v, want %q", notes, err, want)
	}
	if got := c.Apply([]string{"RANK=7", "A=b", "RANK=8"}); got[0] != "A=b" ||
		slices.Contains(got, "RANK=7") || slices.Contains(got, "RANK=8") {
		t.Errorf("environment %q", got)
	}
	for _, launcher := range []Launcher{Torchrun, Kubeflow, UserSet} {
		id := second
		id.Launcher = launcher
		want := []KV{{"MASTER_ADDR", "elsewhere"}}
		if c := changes(t, env, id, TorchOptions{}); !slices.Equal(c.Replaced, want) {
			t.Errorf("%s: replaced values are %q, want only %q", launcher, c.Replaced, want)
		}
	}
}

// A device index of the user is replaced with a note too, under every launcher.
func TestTorchNotesReplacedDeviceIndex(t *testing.T) {
	id := second
	id.Launcher, id.Rank, id.LocalRank, id.NodeRank = UserSet, 0, 0, 0
	_, notes, err := Torch([]string{"RDZV_DEVICE_INDEX=3"}, id, TorchOptions{})
	want := "replacing variables of the environment: RDZV_DEVICE_INDEX=3 by 0"
	if err != nil || !slices.Equal(notes, []string{want}) {
		t.Errorf("notes %q, %v, want %q", notes, err, want)
	}
}

func TestTorchOnOneNodeAndWithoutSettings(t *testing.T) {
	id := second
	id.Rank, id.WorldSize, id.NodeRank, id.Nodes, id.Threads, id.GPUs, id.ErrorFile = 1, 4, 0, 1, 0,
		0, ""
	id.NoLibuv = false
	c := changes(t, Env{}, id, TorchOptions{})
	for _, name := range []string{
		"NCCL_SOCKET_IFNAME", "OMP_NUM_THREADS", "GPU_PER_NODE", "USE_LIBUV", "TORCHELASTIC_ERROR_FILE",
	} {
		if c.sets(name) {
			t.Errorf("%s=%s is set", name, c.value(name))
		}
	}
	if c.value("GLOO_SOCKET_IFNAME") != "eth1" {
		t.Error("GLOO_SOCKET_IFNAME is not eth1")
	}
	configured := second
	configured.NCCLConfigured = true
	if c := changes(t, Env{}, configured, TorchOptions{}); c.sets("NCCL_SOCKET_IFNAME") {
		t.Error("NCCL_SOCKET_IFNAME overrides nccl.conf")
	}
	bare := second
	bare.Interface = ""
	if c := changes(t, Env{}, bare, TorchOptions{}); c.sets("GLOO_SOCKET_IFNAME") ||
		c.sets("TP_SOCKET_IFNAME") || c.sets("NCCL_SOCKET_IFNAME") {
		t.Error("an interface is set although none is known")
	}
}

func TestTorchRemovesTheAgentsVariables(t *testing.T) {
	env := ParseEnv(strings.Fields("RDZV_TOKEN=secret RDZV_JOIN=10.0.0.1:1/key " +
		"RDZV_NPROC_PER_NODE=4 RDZV_RUN_ID=outer RDZV_DEVICE_INDEX=3 RDZVX=1 PATH=/bin " +
		"CUDA_VISIBLE_DEVICES="))
	noDevice := second
	noDevice.Visible = VisibleDevices(env, nil)
	c := changes(t, env, noDevice, TorchOptions{})
	if want := []string{"RDZV_DEVICE_INDEX", "RDZV_JOIN", "RDZV_NPROC_PER_NODE",
		"RDZV_TOKEN"}; !slices.Equal(c.Unset, want) {
		t.Errorf("unset %q", c.Unset)
	}
	for _, entry := range c.Apply([]string{"RDZV_TOKEN=secret", "RDZV_JOIN=10.0.0.1:1/key", "PATH=/bin"}) {
		if strings.Contains(entry, "secret") || strings.Contains(entry, "/key") {
			t.Errorf("the worker has %s", entry)
		}
	}
}

// An MPI program in the worker needs all variables of the launcher.
func TestImpossibleIdentity(t *testing.T) {
	for _, change := range []func(*Identity){
		func(id *Identity) { id.Rank = 8 }, func(id *Identity) { id.Rank = -1 }, func(id *Identity) { id.LocalRank = 4 },
		func(id *Identity) { id.NodeRank = 2 }, func(id *Identity) { id.WorldSize = 0 },
	} {
		id := second
		change(&id)
		if _, _, err := Torch(nil, id, TorchOptions{}); err == nil {
			t.Errorf("identity %+v was accepted", id)
		}
	}
}
