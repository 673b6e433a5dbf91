package envmap

import (
	"maps"
	"strings"
)

// A machine is what /proc and /sys show of a host.
type machine map[string]string

// host returns a machine with one NUMA node for each list of CPUs, all of them with memory and
// allowed to this process.
func host(cpus string, nodes ...string) machine {
	m := machine{
		"sys/devices/system/cpu/online":      cpus,
		"sys/devices/system/node/has_memory": "0-" + itoa(len(nodes)-1),
	}
	for i, list := range nodes {
		m["sys/devices/system/node/node"+itoa(i)+"/cpulist"] = list + "\n"
	}
	return m.allow(cpus, "0-"+itoa(len(nodes)-1))
}

// with returns a copy of m that has more files: path and content in turn.
func (m machine) with(files ...string) machine {
	m = maps.Clone(m)
	for i := 0; i < len(files); i += 2 {
		m[files[i]] = files[i+1]
	}
	return m
}

// allow sets what a launcher or a cgroup allows.
func (m machine) allow(cpus, mems string) machine {
	return m.with("proc/self/status", "Name:\trdzv\nCpus_allowed_list:\t"+cpus+
		"\nMems_allowed_list:\t"+mems+"\n")
}

// nvidia adds 8 GPUs on these NUMA nodes. Their minor numbers are in the reverse order of their
// addresses.
func (m machine) nvidia(nodes string) machine {
	for i, node := range strings.Fields(nodes) {
		address := "0000:" + itoa(i+1) + "b:00.0"
		m = m.with(
			"proc/driver/nvidia/gpus/"+address+"/information", "Model: \t NVIDIA H200\n"+
				"GPU UUID: \t GPU-"+itoa(i)+"a0c\nDevice Minor: \t "+itoa(7-i)+"\n",
			"dev/nvidia"+itoa(7-i), "",
			"sys/bus/pci/devices/"+address+"/numa_node", node+"\n")
	}
	return m
}

// amd adds 8 GPUs on these NUMA nodes. The first has topology node 4, the last 11.
func (m machine) amd(nodes string) machine {
	m = m.with("dev/kfd", "")
	for i, node := range strings.Fields(nodes) {
		m = m.with(
			"sys/class/kfd/kfd/topology/nodes/"+itoa(i+4)+"/properties", "simd_count 880\n"+
				"location_id "+itoa(i<<8|0xc1<<8)+"\ndomain 0\nunique_id "+itoa(160+i)+
				"\ndrm_render_minor "+itoa(128+i)+"\n",
			"dev/dri/renderD"+itoa(128+i), "",
			"sys/bus/pci/devices/0000:c"+itoa(i+1)+":00.0/numa_node", node+"\n")
	}
	return m
}

// intel adds two cards with so many tiles on two NUMA nodes.
func (m machine) intel(tiles int) machine {
	for i, bus := range []string{"9a", "29"} { // the second has the lower address
		card := "sys/class/drm/card" + itoa(i)
		m = m.with(card+"/device/uevent", "PCI_ID=8086:0BD5\nPCI_SLOT_NAME=0000:"+bus+":00.0\n",
			"sys/bus/pci/devices/0000:"+bus+":00.0/numa_node", itoa(1-i))
		for tile := range tiles {
			m = m.with(card+"/gt/gt"+itoa(tile)+"/id", itoa(tile))
		}
	}
	return m
}

// otherModel makes the last GPU one of another model.
func (m machine) otherModel() machine {
	const file = "proc/driver/nvidia/gpus/0000:8b:00.0/information"
	return m.with(file, strings.Replace(m[file], "H200", "A10", 1))
}

// cgroup sets the CPUs of the cgroup.
func (m machine) cgroup(cpus string) machine {
	return m.with("proc/self/cgroup", "0::/job\n",
		"sys/fs/cgroup/job/cpuset.cpus.effective", cpus+"\n")
}
