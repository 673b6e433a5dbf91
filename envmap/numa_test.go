package envmap

import (
	"strings"
	"testing"
)

var (
	two   = host("0-15", "0-3,8-11", "4-7,12-15")
	eight = host("0-31", "0-3", "4-7", "8-11", "12-15", "16-19", "20-23", "24-27", "28-31")
	gpus8 = two.nvidia("0 0 0 0 1 1 1 1")
)

const (
	node0 = "NUMA node 0: CPUs 0-3,8-11 and memory"
	node1 = "NUMA node 1: CPUs 4-7,12-15 and memory"
)

func TestBind(t *testing.T) {
	for _, row := range []struct {
		name    string
		machine machine
		env     string
		ranks   string // local rank/local size; of an agent with one worker
		want    string
	}{
		{"8 GPUs, first node", gpus8, "", "3/8", node0},
		{"8 GPUs, second node", gpus8, "", "4/8", node1},
		{"a mask", gpus8, "CUDA_VISIBLE_DEVICES=6,1", "0/2", node1},
		{"a mask, second entry", gpus8, "CUDA_VISIBLE_DEVICES=6,1", "1/2", node0},
		{"a mask of one, from the launcher", gpus8, "CUDA_VISIBLE_DEVICES=5", "0/8", node1},
		{"more ranks than GPUs", gpus8, "CUDA_VISIBLE_DEVICES=6,1", "2/4", node1},
		{"UUIDs", gpus8, "CUDA_VISIBLE_DEVICES=GPU-7a0c,GPU-2a0c", "0/2", node1},
		{"beginning of a UUID", gpus8, "CUDA_VISIBLE_DEVICES=GPU-7", "0/1", node1},
		{"MIG, named by its GPU", gpus8, "CUDA_VISIBLE_DEVICES=MIG-GPU-4a0c/1/0", "0/1", node1},
		{"MIG, a UUID of its own: its GPU is not known", gpus8, "CUDA_VISIBLE_DEVICES=MIG-4a0c",
			"0/2", node0},
		{"no GPU visible", gpus8, "CUDA_VISIBLE_DEVICES=", "1/2", node1},
		{"different models, in CUDA's order", gpus8.otherModel(), "CUDA_VISIBLE_DEVICES=0", "1/2",
			node1},
		{"different models, by PCI address", gpus8.otherModel(),
			"CUDA_VISIBLE_DEVICES=0 CUDA_DEVICE_ORDER=PCI_BUS_ID", "1/2", node0},
		{"different models, by UUID", gpus8.otherModel(), "CUDA_VISIBLE_DEVICES=GPU-0a0c", "1/2",
			node0},

		{"AMD", two.amd("0 0 0 0 1 1 1 1"), "", "7/8", node1},
		{"AMD, ROCR", two.amd("0 0 0 0 1 1 1 1"), "ROCR_VISIBLE_DEVICES=7,0", "0/2", node1},
		{"AMD, HIP selects from ROCR", two.amd("0 0 0 0 1 1 1 1"),
			"ROCR_VISIBLE_DEVICES=3,4,5 HIP_VISIBLE_DEVICES=1,0", "0/2", node1},
		{"AMD, UUID", two.amd("0 0 0 0 1 1 1 1"), "ROCR_VISIBLE_DEVICES=GPU-00000000000000A6",
			"0/1", node1},
		{"Intel, by PCI address", two.intel(1), "", "0/2", node0},
		{"Intel, a mask", two.intel(1), "ZE_AFFINITY_MASK=1", "0/2", node1},
		{"Intel, a mask with tiles", two.intel(1), "ZE_AFFINITY_MASK=1.0", "0/2", node1},
		{"Intel, several tiles: their numbers are not known", two.intel(2), "ZE_AFFINITY_MASK=1",
			"0/2", node0},

		{"a share, first half", two, "", "1/4", node0},
		{"a share, second half", two, "", "2/4", node1},
		{"one worker has all nodes", two, "", "0/1", "NUMA nodes 0-1: CPUs 0-15"},
		{"a share of several nodes", eight, "", "1/4", "NUMA nodes 2-3: CPUs 8-15"},
		{"more workers than nodes", eight, "", "12/16", "NUMA node 6: CPUs 24-27 and memory"},
		{"three workers, two nodes", two, "", "2/3", node1},
		{"sub-NUMA clustering", eight.nvidia("3 3 1 1 7 7 5 5"), "", "5/8",
			"NUMA node 7: CPUs 28-31 and memory"},

		{"bound to cores by the launcher", gpus8.allow("4-5", "0-1"), "", "4/8",
			"NUMA node 1: CPUs 4-5 and memory"},
		{"bound to the other node", gpus8.allow("0-3", "0-1"), "", "4/8", "not bound"},
		{"bound to nodes without devices", eight.allow("8-15", "0-7"), "", "3/4",
			"NUMA nodes 2-3: CPUs 8-15"},
		{"a cgroup of one node", two.allow("4-7,12-15", "1").cgroup("4-7,12-15"), "", "0/2", node1},
		{"memory of the other node only", gpus8.allow("0-15", "0"), "", "4/8",
			"NUMA node 1: CPUs 4-7,12-15"},
		{"a node without memory", gpus8.with("sys/devices/system/node/has_memory", "0"), "", "4/8",
			"NUMA node 1: CPUs 4-7,12-15"},
		{"memory-only node gets no share", host("0-7", "0-3", "4-7", ""), "", "1/2",
			"NUMA node 1: CPUs 4-7 and memory"},
		{"GPU at a memory-only node", host("0-7", "0-3", "4-7", "").nvidia("2"), "", "0/1",
			"not bound"},
		{"offline CPUs", host("0-5", "0-3", "4-5").allow("0-7", "0-1").nvidia("0 1"), "", "1/2",
			"NUMA node 1: CPUs 4-5 and memory"},
		{"all CPUs of a node are offline", host("0-3", "0-3", ""), "", "1/2",
			"NUMA node 0: CPUs 0-3 and memory"},
		{"virtual machine", host("0-7", "0-7").nvidia("-1 -1"), "", "1/2",
			"NUMA node 0: CPUs 0-7 and memory"},
		{"virtual machine of two nodes", two.nvidia("-1 -1"), "", "1/2", node1},
		{"no NUMA nodes", machine{}, "", "0/1", "not bound"},
	} {
		t.Run(row.name, func(t *testing.T) {
			root := files(row.machine)
			id := identity(t, row.ranks)
			id.Visible = VisibleDevices(parse(row.env), root)
			if b := ReadNUMA(root).Bind(id, "", 0, 1); b.String() != row.want {
				t.Errorf("%s (%s), want %s", b, b.Why, row.want)
			}
		})
	}
}

// identity is the identity of "local rank/local size" on one node.
func identity(t *testing.T, ranks string) Identity {
	t.Helper()
	rank, size, _ := strings.Cut(ranks, "/")
	ids := cpuList(rank + "," + size)
	if len(ids) != 2 {
		t.Fatal(ranks)
	}
	r, n := ids[0], ids[1]
	return Identity{Rank: r, LocalRank: r, WorldSize: n, LocalWorldSize: n, Nodes: 1}
}

// Under Slurm all device files are visible, but only those of the task can be opened: its GPU 0 is
// the first of these.
func TestBindInaccessible(t *testing.T) {
	root := restricted{files(gpus8), "dev/nvidia3 dev/nvidia2"} // the fifth and the sixth
	id := identity(t, "0/1")
	id.Visible = VisibleDevices(parse("CUDA_VISIBLE_DEVICES=0"), root)
	if b := ReadNUMA(root).Bind(id, "", 0, 1); b.String() != node1 {
		t.Errorf("%s (%s), want %s", b, b.Why, node1)
	}
}

// With --device mask a worker sees only its own device.
func TestBindMode(t *testing.T) {
	root := files(gpus8)
	id := identity(t, "5/8")
	id.Visible = VisibleDevices(nil, root)
	for mode, want := range map[DeviceMode]string{
		DeviceMask: node1, DeviceLocalRank: node1, DeviceIndex: node1,
	} {
		id.LocalRank, id.LocalWorldSize = 5, 8
		if b := ReadNUMA(root).Bind(id, mode, 0, 1); b.String() != want {
			t.Errorf("%s: %s, want %s", mode, b, want)
		}
	}
}

// If the launcher has bound the agent to some CPUs, the share is that among the agent's workers.
func TestBindOwnWorkers(t *testing.T) {
	root := files(eight.allow("16-31", "0-7"))
	id := identity(t, "3/4")
	for i, want := range []string{
		"NUMA nodes 4-5: CPUs 16-23", "NUMA nodes 6-7: CPUs 24-31",
	} {
		if b := ReadNUMA(root).Bind(id, "", i, 2); b.String() != want {
			t.Errorf("worker %d: %s, want %s", i, b, want)
		}
	}
}

func TestBindWhy(t *testing.T) {
	for _, row := range []struct {
		machine machine
		ranks   string
		want    string
	}{
		{gpus8, "4/8", "its device 0000:5b:00.0"},
		{two, "1/4", "share 2 of 4"},
		{two.nvidia("-1 -1"), "1/2",
			"its device 0000:2b:00.0 is on no known NUMA node; share 2 of 2"},
		{gpus8.allow("0-3", "0-1"), "4/8", "its device 0000:5b:00.0 is on NUMA node 1, which has " +
			"CPUs 4-7,12-15, and the agent may use CPUs 0-3"},
		{host("0-7", "0-3", "4-7", "").nvidia("2"), "0/1",
			"its device 0000:1b:00.0 is on NUMA node 2, which has no CPUs"},
		{machine{}, "0/1", "the NUMA nodes of this host are not known"},
	} {
		root := files(row.machine)
		id := identity(t, row.ranks)
		id.Visible = VisibleDevices(nil, root)
		if b := ReadNUMA(root).Bind(id, "", 0, 1); b.Why != row.want {
			t.Errorf("%q, want %q", b.Why, row.want)
		}
	}
}

// OMP_NUM_THREADS is at most a worker's share of the cores to which it is bound.
func TestBindThreads(t *testing.T) {
	threads := gpus8.with("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,8")
	for _, row := range []struct {
		name    string
		machine machine
		env     string
		ranks   string
		want    int
	}{
		{"8 cores for 4 workers", gpus8, "", "0/8", 2},
		{"4 cores with 8 threads", threads, "", "0/8", 1},
		{"all GPUs on one node", two.nvidia("1 1 1 1 1 1 1 1"), "", "0/8", 1},
		{"half of the nodes have GPUs", eight.nvidia("3 3 1 1 7 7 5 5"), "", "0/8", 2},
		{"a device from the launcher", gpus8, "CUDA_VISIBLE_DEVICES=7", "0/2", 8},
		{"a share", two, "", "0/2", 8},
		{"more workers than cores", two, "", "0/64", 1},
		{"not bound", machine{}, "", "0/1", 16},
	} {
		root := files(row.machine)
		id := identity(t, row.ranks)
		id.Visible = VisibleDevices(parse(row.env), root)
		if got := ReadNUMA(root).Bind(id, "", 0, 1).Threads(16); got != row.want {
			t.Errorf("%s: %d threads, want %d", row.name, got, row.want)
		}
	}
}

func TestBindModeCheck(t *testing.T) {
	for mode, want := range map[BindMode]string{
		"": "", BindNone: "", BindNUMA: "",
		"socket": `cannot use binding "socket": not none or numa`,
	} {
		if err := mode.Check(); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want %q", mode, err, want)
		}
	}
}
