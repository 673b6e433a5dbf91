package envmap

import (
	"slices"
	"strings"
	"testing"
)

func TestVisibleDevices(t *testing.T) {
	const uuid, uuid2 = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
		"GPU-11111111-d72c-4106-c12f-20bd9faed9f6"
	for _, row := range []struct{ env, want string }{
		{"CUDA_VISIBLE_DEVICES=0,1", "0 1"},
		{"CUDA_VISIBLE_DEVICES=3,1", "3 1"},
		{"CUDA_VISIBLE_DEVICES=2", "2"},
		{"CUDA_VISIBLE_DEVICES=", ""},
		{"CUDA_VISIBLE_DEVICES=-1", ""},
		{"CUDA_VISIBLE_DEVICES=NoDevFiles", ""},
		{"CUDA_VISIBLE_DEVICES=void", ""},
		{"CUDA_VISIBLE_DEVICES=0,-1,1", "0"},
		{"CUDA_VISIBLE_DEVICES=0,0", ""},
		{"CUDA_VISIBLE_DEVICES=1gpu2,2ampere", "1 2"},
		{"CUDA_VISIBLE_DEVICES=0,,1", "0"},
		{"CUDA_VISIBLE_DEVICES=" + uuid + "," + uuid2, uuid + " " + uuid2},
		{"CUDA_VISIBLE_DEVICES=" + uuid + ",1", uuid},
		{"CUDA_VISIBLE_DEVICES=MIG-a,MIG-b", "MIG-a MIG-b"},
		{"CUDA_VISIBLE_DEVICES=MIG-GPU-8932f937/1/0", "MIG-GPU-8932f937/1/0"},
		{"ROCR_VISIBLE_DEVICES=2,3", "2 3"},
		{"HIP_VISIBLE_DEVICES=1", "1"},
		{"ROCR_VISIBLE_DEVICES=4,5,6 HIP_VISIBLE_DEVICES=2,0", "2 0"},
		{"ROCR_VISIBLE_DEVICES=4,5 HIP_VISIBLE_DEVICES=4,5", ""},
		{"ROCR_VISIBLE_DEVICES=4,5 HIP_VISIBLE_DEVICES=1,2", "1"},
		{"ZE_AFFINITY_MASK=0.0,0.1,1.0", "0.0 0.1 1.0"},
		{"ASCEND_RT_VISIBLE_DEVICES=4,5", "4 5"},
		{"ASCEND_VISIBLE_DEVICES=0-3,6", "0 1 2 3 6"},
		{"ASCEND_VISIBLE_DEVICES=Ascend910-0,Ascend910-1", "Ascend910-0 Ascend910-1"},
		{"ASCEND_VISIBLE_DEVICES=2000000000-2000000001", "2000000000-2000000001"},
		{"HABANA_VISIBLE_MODULES=9223372036854775807-9223372036854775807",
			"9223372036854775807-9223372036854775807"},
		{"HABANA_VISIBLE_MODULES=0,2", "0 2"},
		{"HABANA_VISIBLE_DEVICES=1,2", "1 2"},
	} {
		d := VisibleDevices(parse(row.env), nil)
		if !d.Known || !slices.Equal(d.Entries, strings.Fields(row.want)) {
			t.Errorf("%s: %q (known %v), want %q", row.env, d.Entries, d.Known, row.want)
		}
	}
	for _, env := range []string{"PATH=/bin", "ZE_AFFINITY_MASK=", "HABANA_VISIBLE_DEVICES=all"} {
		if d := VisibleDevices(parse(env), nil); d.Known {
			t.Errorf("%s: Entries %q are known, want none", env, d.Entries)
		}
	}
	if d := VisibleDevices(parse("ROCR_VISIBLE_DEVICES=4,5 HIP_VISIBLE_DEVICES=4,5"),
		nil); !strings.Contains(d.Note, "selects from ROCR_VISIBLE_DEVICES=4,5") {
		t.Errorf("note %q", d.Note)
	}
}

func parse(entries string) Env { return ParseEnv(strings.Split(entries, " ")) }

func TestDeviceModes(t *testing.T) {
	for _, row := range []struct {
		env   string
		local int // of 4
		mode  DeviceMode
		index string // of the device; "" is none
		rank  string // LOCAL_RANK
		mask  string // the device variable that is set; "" is none
		note  string // part of the only note; "" is no note
	}{
		{"", 1, DeviceIndex, "1", "1", "", ""},
		{"CUDA_VISIBLE_DEVICES=0,1,2,3", 3, DeviceIndex, "3", "3", "", ""},
		{"CUDA_VISIBLE_DEVICES=7,6,5,4", 3, "", "3", "3", "", ""},
		{"CUDA_VISIBLE_DEVICES=2", 0, DeviceIndex, "0", "0", "", ""},
		{"CUDA_VISIBLE_DEVICES=2", 2, DeviceIndex, "0", "2", "", "--device local-rank"},
		{"CUDA_VISIBLE_DEVICES=2", 2, DeviceLocalRank, "0", "0", "", ""},
		{"CUDA_VISIBLE_DEVICES=0,1", 3, DeviceIndex, "1", "3", "", "--nproc-per-node 2"},
		{"CUDA_VISIBLE_DEVICES=0,1", 3, DeviceLocalRank, "1", "1", "", "--nproc-per-node 2"},
		{"CUDA_VISIBLE_DEVICES=", 1, DeviceIndex, "", "1", "", ""},
		{"CUDA_VISIBLE_DEVICES=NoDevFiles", 1, DeviceLocalRank, "", "1", "", ""},
		{"CUDA_VISIBLE_DEVICES=7,6,5,4", 3, DeviceMask, "0", "3", "CUDA_VISIBLE_DEVICES=4", ""},
		{"CUDA_VISIBLE_DEVICES=7,6", 3, DeviceMask, "0", "3", "CUDA_VISIBLE_DEVICES=6",
			"shares device 6"},
		{"CUDA_VISIBLE_DEVICES=", 3, DeviceMask, "", "3", "", ""},
		{"", 3, DeviceMask, "", "3", "", ""},
		{"CUDA_VISIBLE_DEVICES=MIG-a,MIG-b", 1, DeviceMask, "0", "1", "CUDA_VISIBLE_DEVICES=MIG-b",
			""},
		{"CUDA_VISIBLE_DEVICES=MIG-a,MIG-b", 1, DeviceIndex, "0", "1", "", "--device mask"},
		{"CUDA_VISIBLE_DEVICES=MIG-a,MIG-b", 1, DeviceLocalRank, "0", "0", "", "--device mask"},
		{"ROCR_VISIBLE_DEVICES=4,5,6 HIP_VISIBLE_DEVICES=2,0", 1, DeviceMask, "0", "1",
			"HIP_VISIBLE_DEVICES=0", ""},
		{"ROCR_VISIBLE_DEVICES=4,5", 1, DeviceMask, "0", "1", "ROCR_VISIBLE_DEVICES=5", ""},
		{"ZE_AFFINITY_MASK=0.0,0.1", 1, DeviceMask, "0", "1", "ZE_AFFINITY_MASK=0.1", ""},
		{"ASCEND_VISIBLE_DEVICES=4,5", 1, DeviceMask, "0", "1", "ASCEND_RT_VISIBLE_DEVICES=1", ""},
		{"CUDA_VISIBLE_DEVICES=7,6,5,4", 3, DeviceVirtual, "0", "0", "CUDA_VISIBLE_DEVICES=4", ""},
		{"", 3, DeviceVirtual, "", "0", "", ""},
		{"CUDA_VISIBLE_DEVICES=", 3, DeviceVirtual, "", "0", "", ""},
	} {
		t.Run(row.env+" "+itoa(row.local)+" "+string(row.mode), func(t *testing.T) {
			env := parse(row.env)
			id := Identity{Rank: row.local, WorldSize: 4, LocalRank: row.local, LocalWorldSize: 4,
				Nodes: 1, Tasks: 1, Visible: VisibleDevices(env, nil)}
			c := changes(t, env, id, TorchOptions{Device: row.mode})
			if got := c.value("RDZV_DEVICE_INDEX"); got != row.index {
				t.Errorf("RDZV_DEVICE_INDEX=%q, want %q", got, row.index)
			}
			if got := c.value("LOCAL_RANK"); got != row.rank {
				t.Errorf("LOCAL_RANK=%q, want %q", got, row.rank)
			}
			if got := maskIn(c); got != row.mask {
				t.Errorf("mask %q, want %q", got, row.mask)
			}
			if len(c.Notes) > 1 || (row.note == "") != (len(c.Notes) == 0) ||
				!strings.Contains(strings.Join(c.Notes, ""), row.note) {
				t.Errorf("notes %q, want one with %q", c.Notes, row.note)
			}
		})
	}
	id := Identity{WorldSize: 1, LocalWorldSize: 1, Nodes: 1,
		Visible: VisibleDevices(Env{"HABANA_VISIBLE_DEVICES": "1,2"}, nil)}
	if _, err := TorchChanges(Env{}, id, TorchOptions{Device: DeviceMask}); err == nil ||
		!strings.Contains(err.Error(), "HABANA_VISIBLE_DEVICES=1,2") {
		t.Errorf("masking HABANA_VISIBLE_DEVICES: %v", err)
	}
	_, err := TorchChanges(Env{}, id, TorchOptions{Device: "gpu"})
	if err == nil || !strings.Contains(err.Error(), `"gpu"`) ||
		!strings.Contains(err.Error(), "local-rank") {
		t.Errorf("device mode gpu: %v", err)
	}
}

func maskIn(c Changes) string {
	for _, kv := range c.Set {
		if strings.Contains(kv.Name, "VISIBLE") || kv.Name == "ZE_AFFINITY_MASK" {
			return kv.Name + "=" + kv.Value
		}
	}
	return ""
}

// For every list a worker's index is within it, and a mask leaves one of its entries.
func FuzzDevices(f *testing.F) {
	for _, list := range []string{
		"0,1", "", "-1", "GPU-a,GPU-b", "MIG-a", "0-3", "0.1,1.0", ",", "99999999999999999999", "0,0",
	} {
		for variable := range 8 {
			f.Add(list, variable, 1)
		}
	}
	names := []string{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
		"ZE_AFFINITY_MASK", "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES",
		"HABANA_VISIBLE_MODULES", "HABANA_VISIBLE_DEVICES"}
	f.Fuzz(func(t *testing.T, list string, variable, local int) {
		if variable < 0 || variable >= len(names) || local < 0 || local > 7 ||
			strings.ContainsRune(list, 0) {
			return
		}
		env := Env{names[variable]: list}
		visible := VisibleDevices(env, nil)
		id := Identity{LocalRank: local, Rank: local, WorldSize: 8, LocalWorldSize: 8, Nodes: 1,
			Visible: visible}
		for _, mode := range DeviceModes() {
			d, err := assign(id, DeviceMode(mode))
			if err != nil {
				continue
			}
			if visible.Known && (d.index >= visible.Count() || d.localRank >= 8) {
				t.Errorf("%s=%q: mode %s: index %d of %q", names[variable], list, mode, d.index,
					visible.Entries)
			}
			for _, kv := range d.set {
				narrowed := VisibleDevices(Env{kv.Name: kv.Value}, nil)
				if narrowed.Count() != 1 || kv.Name == names[variable] &&
					!slices.Contains(visible.Entries, narrowed.Entries[0]) {
					t.Errorf("%s=%q is masked with %s=%q", names[variable], list, kv.Name, kv.Value)
				}
			}
		}
	})
}

func TestProcsPerNode(t *testing.T) {
	for _, row := range []struct {
		spec          string
		devices, cpus int
		want          int // 0 is an error
	}{
		{"", 8, 64, 1}, {"3", 8, 64, 3}, {"auto", 8, 64, 8}, {"auto", 0, 64, 64}, {"gpu", 4, 64, 4},
		{"gpu", 0, 64, 0}, {"cpu", 4, 64, 64},
		{"0", 4, 64, 0}, {"-2", 4, 64, 0}, {"1024", 0, 1, 1024}, {"1025", 0, 1, 0},
		{"cpu", 0, 1025, 0}, {"two", 4, 64, 0}, {"cpu", 0, 0, 0}, {"1.5", 1, 1, 0},
		{"xpu", 2, 64, 2}, {"npu", 8, 64, 8}, {"hpu", 0, 64, 0},
	} {
		n, err := ProcsPerNode(row.spec, row.devices, row.cpus, 1024)
		if n != row.want || (err == nil) != (row.want > 0) {
			t.Errorf("ProcsPerNode(%q, %d, %d) = %d, %v; want %d", row.spec, row.devices, row.cpus,
				n, err, row.want)
		}
	}
}

func TestCountFor(t *testing.T) {
	const intel, nvidia = "ZE_AFFINITY_MASK=0,1", "CUDA_VISIBLE_DEVICES=0,1,2"
	for _, row := range []struct {
		env, spec string
		want      int
	}{
		{intel, "xpu", 2}, {intel, "npu", 0}, {intel, "hpu", 0}, {intel, "gpu", 2}, {intel, "auto", 2},
		{nvidia, "gpu", 3}, {nvidia, "xpu", 0},
		{"ASCEND_RT_VISIBLE_DEVICES=4,5", "npu", 2}, {"HABANA_VISIBLE_MODULES=0", "hpu", 1},
	} {
		if n := VisibleDevices(parse(row.env), nil).CountFor(row.spec); n != row.want {
			t.Errorf("%s: CountFor(%q) = %d, want %d", row.env, row.spec, n, row.want)
		}
	}
}

// One worker of each node notes that there are too few devices.
func TestOneWorkerNotesSharedDevices(t *testing.T) {
	noted := 0
	for rank := range 4 {
		id := Identity{
			Rank: rank, WorldSize: 4, LocalRank: rank, LocalWorldSize: 4, NodeRank: 0, Nodes: 1,
			MasterAddr: "127.0.0.1", MasterPort: 29500, RunID: "run",
			Visible: VisibleDevices(Env{"CUDA_VISIBLE_DEVICES": "0,1"}, nil),
		}
		_, notes, err := Torch(nil, id, TorchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		noted += len(notes)
	}
	if noted != 1 {
		t.Errorf("%d notes of 4 workers, want one", noted)
	}
}

// How each worker gets a device of its own, if there are enough for that.
func TestDevicesForEachWorker(t *testing.T) {
	for _, row := range []struct {
		launcher              Launcher
		tasks, workers, count int // of the node
		want                  string
	}{
		{None, 1, 4, 2, "--nproc-per-node 2 gives each worker its own"},
		{Slurm, 3, 3, 2, "srun --ntasks-per-node 2 gives each worker its own"},
		{SlurmPMI, 4, 8, 2, "srun --ntasks-per-node 2 with --nproc-per-node 1 gives each worker its own"},
		{OpenMPI4, 4, 4, 2, "mpirun --map-by ppr:2:node gives each worker its own"},
		{Hydra, 4, 4, 3, "mpiexec -ppn 3 gives each worker its own"},
		{Flux, 4, 4, 3, "a start with 3 tasks on each node gives each worker its own"},
		{Slurm, 2, 8, 5, "--nproc-per-node 2 gives each worker its own"},
		{PALS, 0, 4, 2, "at most 2 workers on this node have their own"},
	} {
		id := Identity{Launcher: row.launcher, Tasks: row.tasks, LocalWorldSize: row.workers}
		if got := id.ownDevices(row.count); got != row.want {
			t.Errorf("%+v: %q", row, got)
		}
	}
}

func TestOneWorkerOfSeveralDevices(t *testing.T) {
	for value, want := range map[string]string{
		"CUDA_VISIBLE_DEVICES=0,1": "1 worker on a node with 2 devices (CUDA_VISIBLE_DEVICES=0,1): " +
			"--nproc-per-node gpu gives each",
		"CUDA_VISIBLE_DEVICES=MIG-a,MIG-b": "--nproc-per-node gpu and --device mask gives each",
		"CUDA_VISIBLE_DEVICES=0":           "",
		"CUDA_VISIBLE_DEVICES=":            "",
		"PATH=/bin":                        "",
	} {
		got := VisibleDevices(ParseEnv([]string{value}), nil).OneWorker()
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}
