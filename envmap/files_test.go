package envmap

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// files returns a file system with these files: path to content.
func files(content map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range content {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func gpu(minor string) string {
	return "Model: \t\t NVIDIA H200\nIRQ:   \t\t 96\nGPU UUID: \t GPU-0\nBus Location: \t " +
		"0000:1b:00.0\nDevice Minor: \t " + minor + "\nGPU Excluded:\t No\n"
}

func TestDeviceFiles(t *testing.T) {
	nvidia := map[string]string{
		"proc/driver/nvidia/gpus/0000:1b:00.0/information": gpu("0"),
		"proc/driver/nvidia/gpus/0000:43:00.0/information": gpu("1"),
		"dev/nvidiactl": "", "dev/nvidia-uvm": "", "dev/nvidia-caps/nvidia-cap1": "",
	}
	with := func(base map[string]string, more ...string) map[string]string {
		all := map[string]string{}
		for k, v := range base {
			all[k] = v
		}
		for _, name := range more {
			all[name] = ""
		}
		return all
	}
	for _, row := range []struct {
		name   string
		files  map[string]string
		env    Env
		vendor string
		count  int
	}{
		{"no files", nil, nil, "", 0},
		{"nvidia", with(nvidia, "dev/nvidia0", "dev/nvidia1"), nil, "nvidia", 2},
		{"nvidia, one GPU in the container", with(nvidia, "dev/nvidia1"), nil, "nvidia", 1},
		{"nvidia, before the first use", nvidia, nil, "nvidia", 2},
		{"nvidia, no /proc entry", map[string]string{"dev/nvidia0": "", "dev/nvidia3": ""}, nil,
			"nvidia", 2},
		{"nvidia, driver without GPUs", map[string]string{"dev/nvidiactl": ""}, nil, "", 0},
		{
			"nvidia, CUDA_VISIBLE_DEVICES", with(nvidia, "dev/nvidia0", "dev/nvidia1"),
			Env{"CUDA_VISIBLE_DEVICES": "1"}, "nvidia", 1,
		},
		{
			"nvidia, ROCR_VISIBLE_DEVICES is ignored", with(nvidia, "dev/nvidia0", "dev/nvidia1"),
			Env{"ROCR_VISIBLE_DEVICES": "1"}, "nvidia", 2,
		},
		{"amd", map[string]string{"dev/kfd": "", "dev/dri/renderD128": "", "dev/dri/renderD129": "",
			"sys/class/kfd/kfd/topology/nodes/0/properties": "cpu_cores_count 64\nsimd_count 0\n" +
				"drm_render_minor 0\n",
			"sys/class/kfd/kfd/topology/nodes/1/properties": "cpu_cores_count 0\nsimd_count 440\n" +
				"drm_render_minor 128\n",
			"sys/class/kfd/kfd/topology/nodes/2/properties": "simd_count 440\ndrm_render_minor " +
				"130\n",
			"sys/class/kfd/kfd/topology/nodes/3/properties": "simd_count 440\ndrm_render_minor " +
				"129\n"}, nil, "amd", 2},
		{"amd, HIP reads CUDA_VISIBLE_DEVICES",
			map[string]string{"dev/kfd": "", "dev/dri/renderD128": "",
				"sys/class/kfd/kfd/topology/nodes/1/properties": "simd_count 440\ndrm_render_minor " +
					"128\n"}, Env{"CUDA_VISIBLE_DEVICES": "0,1"}, "amd", 2},
		{
			"amd without /dev/kfd",
			map[string]string{"sys/class/kfd/kfd/topology/nodes/1/properties": "simd_count 440\n"},
			nil, "",
			0,
		},
		{"intel", map[string]string{
			"sys/class/drm/card0/device/uevent": "DRIVER=i915\nPCI_CLASS=30000\n" +
				"PCI_ID=8086:4680\nPCI_SLOT_NAME=0000:00:02.0\n",
			"sys/class/drm/card1/device/uevent": "DRIVER=xe\nPCI_ID=8086:0BD5\n" +
				"PCI_SLOT_NAME=0000:29:00.0\n",
			"sys/class/drm/card2/device/uevent": "DRIVER=ast\nPCI_ID=1A03:2000\n" +
				"PCI_SLOT_NAME=0000:30:00.0\n",
			"sys/class/drm/card1-DP-1/status": ""}, nil, "intel", 1},
		{"ascend", map[string]string{"dev/davinci0": "", "dev/davinci1": "",
			"dev/davinci_manager": ""}, nil, "ascend", 2},
		{
			"habana",
			map[string]string{"dev/accel/accel0": "", "dev/accel/accel1": "",
				"dev/accel/accel_controlD0": ""},
			nil, "habana", 2,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := VisibleDevices(row.env, files(row.files))
			if d.Vendor != row.vendor || d.Count() != row.count || d.Known != (row.vendor != "") {
				t.Errorf("devices %+v, want %d of %q", d, row.count, row.vendor)
			}
		})
	}
}

// restricted is a file system in which this process may open only some files.
type restricted struct {
	fs.FS
	accessible string
}

func (r restricted) Accessible(name string) bool { return strings.Contains(r.accessible, name) }

// Devices that this process may not open are not its own.
func TestInaccessibleDevices(t *testing.T) {
	root := files(map[string]string{
		"proc/driver/nvidia/gpus/0000:1b:00.0/information": gpu("0"),
		"proc/driver/nvidia/gpus/0000:43:00.0/information": gpu("1"),
		"dev/nvidia0": "", "dev/nvidia1": "",
	})
	if d := VisibleDevices(nil, restricted{root, "dev/nvidia1"}); d.Count() != 1 {
		t.Errorf("%d devices, want 1", d.Count())
	}
}

// If no variable is set, a mask sets the vendor's own.
func TestMaskOfDeviceFiles(t *testing.T) {
	for vendor, want := range map[string]string{
		"nvidia": "CUDA_VISIBLE_DEVICES=1", "amd": "ROCR_VISIBLE_DEVICES=1",
		"intel":  "ZE_AFFINITY_MASK=1",
		"ascend": "ASCEND_RT_VISIBLE_DEVICES=1", "habana": "HABANA_VISIBLE_MODULES=1",
	} {
		id := Identity{Rank: 1, WorldSize: 2, LocalRank: 1, LocalWorldSize: 2, Nodes: 1,
			Visible: Devices{Vendor: vendor, Entries: ordinals(2), Known: true}}
		d, err := assign(id, DeviceMask)
		if err != nil || len(d.set) != 1 || d.set[0].Name+"="+d.set[0].Value != want ||
			d.index != 0 {
			t.Errorf("%s: %+v, %v; want %s and index 0", vendor, d, err, want)
		}
	}
}

func TestCPUs(t *testing.T) {
	status := func(list string) string {
		return "Name:\trdzv\nCpus_allowed:\tff\n" +
			"Cpus_allowed_list:\t" + list + "\nMems_allowed_list:\t0\n"
	}
	const online, siblings, cgroup = "sys/devices/system/cpu/online",
		"sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "proc/self/cgroup"
	for _, row := range []struct {
		name  string
		files map[string]string
		want  CPUs
	}{
		{"no files", nil, CPUs{1, 1, 1}},
		{"plain", map[string]string{"proc/self/status": status("0-7"), online: "0-7\n"},
			CPUs{8, 8, 8}},
		{"bound to one", map[string]string{"proc/self/status": status("5"), online: "0-7\n"},
			CPUs{1, 1, 8}},
		{
			"two threads per core, with a stride",
			map[string]string{"proc/self/status": status("0-15"), online: "0-15",
				siblings: "0,8\n"},
			CPUs{16, 8, 8},
		},
		{
			"two threads per core, consecutive",
			map[string]string{"proc/self/status": status("0-3"), online: "0-15", siblings: "0-1\n"},
			CPUs{4, 2, 8},
		},
		{
			"bound to the first thread of each core",
			map[string]string{"proc/self/status": status("0-3"), online: "0-15", siblings: "0,8\n"},
			CPUs{4, 4, 8},
		},
		{"cpuset, v2", map[string]string{"proc/self/status": status("0-3"), online: "0-63",
			cgroup: "0::/job/step\n",
			"sys/fs/cgroup/job/step/cpuset.cpus.effective": "0-3\n"}, CPUs{4, 4, 4}},
		{"cpuset, v1", map[string]string{"proc/self/status": status("0-3"), online: "0-63",
			cgroup: "4:cpuset:/slurm/uid_1\n2:cpu,cpuacct:/\n0::/x\n",
			"sys/fs/cgroup/cpuset/slurm/uid_1/cpuset.cpus": "0-3\n",
			"sys/fs/cgroup/cpuset/cpuset.cpus":             "0-63\n"}, CPUs{4, 4, 4}},
		{"container: the host's path", map[string]string{"proc/self/status": status("0-63"),
			online: "0-63", cgroup: "0::/kubepods/pod1\n",
			"sys/fs/cgroup/cpuset.cpus.effective": "0-15\n",
			"sys/fs/cgroup/cpu.max":               "250000 100000\n"}, CPUs{3, 64, 3}},
		{"quota of an ancestor", map[string]string{"proc/self/status": status("0-7"), online: "0-7",
			cgroup:                      "0::/a/b\n",
			"sys/fs/cgroup/a/cpu.max":   "200000 100000\n",
			"sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, CPUs{2, 8, 2}},
		{"smaller quota in the child", map[string]string{"proc/self/status": status("0-7"),
			online: "0-7", cgroup: "0::/a/b\n",
			"sys/fs/cgroup/a/cpu.max":   "400000 100000\n",
			"sys/fs/cgroup/a/b/cpu.max": "200000 100000\n"}, CPUs{2, 8, 2}},
		{"smaller quota in the parent", map[string]string{"proc/self/status": status("0-7"),
			online: "0-7", cgroup: "0::/a/b\n",
			"sys/fs/cgroup/a/cpu.max":   "300000 100000\n",
			"sys/fs/cgroup/a/b/cpu.max": "500000 100000\n"}, CPUs{3, 8, 3}},
		{"quota, v1", map[string]string{"proc/self/status": status("0-7"), online: "0-7",
			cgroup:                                  "2:cpu,cpuacct:/d\n",
			"sys/fs/cgroup/cpu/d/cpu.cfs_quota_us":  "400000\n",
			"sys/fs/cgroup/cpu/d/cpu.cfs_period_us": "100000\n"}, CPUs{4, 8, 4}},
		{"no quota, v1", map[string]string{"proc/self/status": status("0-7"), online: "0-7",
			cgroup:                                  "2:cpu,cpuacct:/d\n",
			"sys/fs/cgroup/cpu/d/cpu.cfs_quota_us":  "-1\n",
			"sys/fs/cgroup/cpu/d/cpu.cfs_period_us": "100000\n"}, CPUs{8, 8, 8}},
		{
			"malformed files",
			map[string]string{"proc/self/status": status("x-y"), online: "7-0",
				cgroup: "junk\n::\n"},
			CPUs{1, 1, 1},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := ReadCPUs(files(row.files)); got != row.want {
				t.Errorf("CPUs %+v, want %+v", got, row.want)
			}
		})
	}
}

func TestThreads(t *testing.T) {
	for _, row := range []struct {
		name         string
		cpus         CPUs
		agents, node int // workers
		want         int
	}{
		{"unbound, four ranks", CPUs{64, 64, 64}, 1, 4, 16},
		{"one agent, four workers", CPUs{64, 64, 64}, 4, 4, 16},
		{"bound to a core each", CPUs{1, 1, 64}, 1, 4, 1},
		{"bound to four cores each", CPUs{4, 4, 64}, 1, 4, 4},
		{"bound to a socket shared by four", CPUs{32, 32, 64}, 1, 8, 8},
		{"more workers than cores", CPUs{2, 2, 2}, 1, 4, 1},
		{"quota", CPUs{3, 64, 3}, 1, 1, 3},
		{"zero values", CPUs{}, 0, 0, 1},
	} {
		if got := row.cpus.Threads(row.agents, row.node); got != row.want {
			t.Errorf("%s: Threads returned %d, want %d", row.name, got, row.want)
		}
	}
}

func FuzzCPUList(f *testing.F) {
	for _, list := range []string{"0-3,8", "", "0", "3-1", "0-99999999999", "-1", "0-65535,0-65535,0-65535"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		cpus := cpuList(list)
		for _, cpu := range cpus {
			if cpu < 0 || cpu >= maxCPUs {
				t.Fatalf("cpuList(%q) contains %d", list, cpu)
			}
		}
		if len(cpus) > 2*maxCPUs || cores(cpus, []int{0, 1}) > len(cpus) {
			t.Errorf("cpuList(%q) has %d entries", list, len(cpus))
		}
	})
}
