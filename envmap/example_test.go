package envmap_test

import (
	"fmt"
	"strings"

	"rdzv/envmap"
)

func ExampleDetect() {
	environ := strings.Fields("PMI_RANK=3 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 " +
		"SLURM_PROCID=1 SLURM_STEP_ID=0")
	p, err := envmap.Detect(envmap.ParseEnv(environ), "")
	fmt.Println(p.Launcher, p.Rank, p.Size, p.NodeRank == envmap.Unknown, err)
	for _, row := range p.Explain() {
		if row.What == "node rank" || row.What == "ignored" {
			fmt.Printf("%s: %s\n", row.What, row.Note)
		}
	}
	// Output:
	// hydra 3 4 true <nil>
	// node rank: not set by hydra; rdzv exec sets NODE_RANK
	// ignored: hydra runs inside slurm, whose variables describe hydra's daemons
}

func ExampleTorchChanges() {
	env := envmap.ParseEnv([]string{"RANK=7", "CUDA_VISIBLE_DEVICES=3", "RDZV_TOKEN=secret"})
	id := envmap.Identity{
		Rank: 1, WorldSize: 2, LocalRank: 1, LocalWorldSize: 2, Nodes: 1,
		MasterAddr: "127.0.0.1", MasterPort: 29600, RunID: "job", Launcher: envmap.None,
		Visible: envmap.VisibleDevices(env, nil),
	}
	changes, err := envmap.TorchChanges(env, id, envmap.TorchOptions{
		Device: envmap.DeviceLocalRank,
		Set:    []string{"STORE=tcp://{master_addr}:{master_port}"},
	})
	fmt.Println(changes.Unset, changes.Replaced, err)
	for _, kv := range changes.Set {
		if kv.Name == "RANK" || kv.Name == "LOCAL_RANK" || kv.Name == "STORE" {
			fmt.Println(kv.Name, kv.Value)
		}
	}
	// Output:
	// [RDZV_TOKEN] [{RANK 7}] <nil>
	// RANK 1
	// LOCAL_RANK 0
	// STORE tcp://127.0.0.1:29600
}

func ExampleShell() {
	fmt.Print(envmap.Shell([]envmap.KV{{Name: "A", Value: "it's"},
		{Name: "not-a-name", Value: "x"}}, "OLD"))
	// Output:
	// unset OLD
	// export A='it'\''s'
}
