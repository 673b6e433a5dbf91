package node

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"testing/fstest"
)

var update = flag.Bool("update", false, "write the golden files")

// machine is a fixture of a node.
type machine struct {
	files     fstest.MapFS
	shm       Space
	openFiles uint64
}

func (m machine) set(name, format string, args ...any) {
	m.files[name] = &fstest.MapFile{Data: fmt.Appendf(nil, format+"\n", args...)}
}

func (m machine) facts(ctx context.Context) []Fact {
	space := func(string) (Space, error) {
		if m.shm.Total == 0 {
			return Space{}, errors.New("no such file or directory")
		}
		return m.shm, nil
	}
	return Files{Root: m.files, Space: space, OpenFiles: m.openFiles, Processes: true}.Facts(ctx)
}

// gpuNode has 8 GPUs on two NUMA nodes and 8 InfiniBand adapters.
func gpuNode() machine {
	m := machine{files: fstest.MapFS{}, shm: Space{1008 << 30, 1000 << 30}, openFiles: 65536}
	m.set("proc/sys/kernel/osrelease", "6.8.0-45-generic")
	m.set("proc/meminfo", "MemTotal:       2113536512 kB\nMemFree:        1 kB")
	m.set("proc/self/cgroup", "0::/job/step")
	m.set("sys/fs/cgroup/job/memory.max", "1649267441664")
	m.set("sys/fs/cgroup/job/step/memory.max", "max")
	m.set("proc/self/limits", "%-25s %-20s %-20s %s\n%-25s %-20s %-20s %s\n%-25s %-20s %-20s %s",
		"Limit", "Soft Limit", "Hard Limit", "Units", "Max open files", "1048576", "1048576", "files",
		"Max locked memory", "unlimited", "unlimited", "bytes")
	m.set("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "+
		"550.90.07  Release Build  (dvs-builder@U16-I1)\nGCC version:  gcc version 12.3.0")
	for i := range 8 {
		address := fmt.Sprintf("0000:%02x:00.0", 0x19+0x1c*i)
		m.set("proc/driver/nvidia/gpus/"+address+"/information",
			"Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 18\nDevice Minor: \t %d", i)
		m.pci(address, i/4, 16, 16)
		port := fmt.Sprintf("sys/class/infiniband/mlx5_%d/ports/1", i)
		m.set(port+"/state", "4: ACTIVE")
		m.set(port+"/rate", "400 Gb/sec (4X NDR)")
		m.set(port+"/link_layer", "InfiniBand")
	}
	m.process(1, "systemd", "/dev/null", "/proc/1/mountinfo")
	return m
}

func (m machine) pci(address string, numa, width, most int) {
	dir := "sys/bus/pci/devices/" + address
	m.set(dir+"/numa_node", "%d", numa)
	m.set(dir+"/current_link_speed", "2.5 GT/s PCIe")
	m.set(dir+"/current_link_width", "%d", width)
	m.set(dir+"/max_link_speed", "32.0 GT/s PCIe")
	m.set(dir+"/max_link_width", "%d", most)
}

// degraded is gpuNode with a card on a half of its lanes, a port that is down, limits that are too
// low, and a process of an earlier job.
func degraded() machine {
	m := gpuNode()
	m.shm, m.openFiles = Space{64 << 20, 0}, 1024
	m.pci("0000:a5:00.0", 1, 8, 16)
	m.set("sys/class/infiniband/mlx5_3/ports/1/state", "1: DOWN")
	m.set("proc/self/limits",
		"Max open files            524288               524288               "+
			"files\nMax locked memory         8388608              8388608              bytes")
	m.process(4711, "python3", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia3")
	return m
}

// The golden files are also the nodes of a table, see package console.
func TestFacts(t *testing.T) {
	for name, m := range map[string]machine{"gpu": gpuNode(), "degraded": degraded()} {
		file := "testdata/" + name + ".json"
		got, _ := json.MarshalIndent(m.facts(t.Context()), "", "  ")
		if *update {
			if err := os.WriteFile(file, append(got, '\n'), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != string(got)+"\n" {
			t.Errorf("%s: facts %s\nwant %s (%v)", name, got, want, err)
		}
	}
}

func TestFact(t *testing.T) {
	amd := machine{files: fstest.MapFS{}, shm: Space{8 << 30, 8 << 30}}
	for i := range 2 {
		device := fmt.Sprintf("sys/class/drm/card%d/device", i+1)
		amd.set(device+"/vendor", "0x1002")
		amd.set(device+"/device", "0x74a1")
		amd.set(device+"/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:0%d:00.0", i)
		amd.pci(fmt.Sprintf("0000:0%d:00.0", i), -1, 16, 16)
	}
	amd.set("sys/class/drm/card1-DP-1/device/vendor", "0x1002")
	amd.set("sys/class/drm/card0/device/vendor", "0x1a03")
	amd.set("sys/module/amdgpu/version", "6.8.5")
	virtual := gpuNode()
	virtual.pci("0000:19:00.0", -1, 0, 255)
	version1 := gpuNode()
	version1.set("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a/b\n1:name=systemd:/")
	version1.set("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "8589934592")
	version1.set("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712")
	unlimited := gpuNode()
	delete(unlimited.files, "sys/fs/cgroup/job/memory.max")
	for _, c := range []struct {
		m          machine
		fact, want string
	}{
		{amd, "GPUs", "2 x AMD 74a1"},
		{amd, "GPU driver", "6.8.5"},
		{amd, "GPU links", "2 x PCIe x16 32.0 GT/s"},
		{amd, "GPU NUMA nodes", ""},
		{amd, "memory", ""},
		{virtual, "GPU links", ""},
		{virtual, "GPU NUMA nodes", "- 0 0 0 1 1 1 1"},
		{version1, "memory", "8 GiB (cgroup limit)"},
		{unlimited, "memory", "2016 GiB"},
		{machine{files: fstest.MapFS{}, shm: Space{}}, "/dev/shm", "none"},
	} {
		got := ""
		for _, f := range c.m.facts(t.Context()) {
			if f.Name == c.fact {
				got = f.Value
			}
		}
		if got != c.want {
			t.Errorf("%s is %q, want %q", c.fact, got, c.want)
		}
	}
}

func TestMTU(t *testing.T) {
	m := machine{files: fstest.MapFS{}, shm: Space{}}
	m.set("sys/class/net/eth0/mtu", "9000")
	if got := (Files{Root: m.files}).MTU("eth0"); got.Value != "9000" {
		t.Errorf("MTU %+v, want 9000", got)
	}
}
