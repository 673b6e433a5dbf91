package envmap

import (
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// NUMA are the NUMA nodes of this host, and what of them this process may use.
type NUMA struct {
	root     fs.FS
	nodes    []numaNode // in the order of their numbers
	allowed  []int      // CPUs that this process may use
	bound    bool       // it may use fewer CPUs than its cgroup: the launcher has bound it
	siblings []int      // see cores
}

type numaNode struct {
	id     int
	online []int // its CPUs
	cpus   []int // those that this process may use
	memory bool  // it has memory that this process may use
}

// ReadNUMA reads the NUMA nodes from /proc and /sys below root. CPUs that are offline belong to no
// node.
func ReadNUMA(root fs.FS) NUMA {
	const dir = "sys/devices/system/node"
	status := readText(root, "proc/self/status")
	online := readSet(root, "sys/devices/system/cpu/online")
	n := NUMA{
		root: root, allowed: online,
		siblings: readSet(root, "sys/devices/system/cpu/cpu0/topology/thread_siblings_list"),
	}
	if mask := cpuList(field(status, "Cpus_allowed_list:")); len(mask) > 0 {
		n.allowed = intersection(mask, online)
	}
	cgroup := cpusetOf(root, readText(root, "proc/self/cgroup"))
	if len(cgroup) == 0 {
		cgroup = online
	}
	n.bound = len(n.allowed) < len(intersection(cgroup, online))
	memory := readSet(root, dir+"/has_memory")
	if mems := cpuList(field(status, "Mems_allowed_list:")); len(mems) > 0 {
		memory = intersection(memory, mems)
	}
	for _, id := range slices.Sorted(maps.Keys(numbered(root, dir, "node"))) {
		cpus := readSet(root, dir+"/node"+itoa(id)+"/cpulist")
		n.nodes = append(n.nodes, numaNode{
			id: id, online: cpus, cpus: intersection(cpus, n.allowed),
			memory: slices.Contains(memory, id),
		})
	}
	return n
}

// intersection returns the elements of a that are in b.
func intersection(a, b []int) []int {
	in := make(map[int]bool, len(b))
	for _, x := range b {
		in[x] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(x int) bool { return !in[x] })
}

// of returns the position in n.nodes of the node to which a PCI device is attached; Unknown if it
// is not known, as in most virtual machines.
func (n NUMA) of(address string) int {
	id, err := strconv.Atoi(strings.TrimSpace(
		readText(n.root, "sys/bus/pci/devices/"+address+"/numa_node")))
	if address == "" || err != nil {
		return Unknown
	}
	return slices.IndexFunc(n.nodes, func(node numaNode) bool { return node.id == id })
}

// usable returns the nodes with CPUs that this process may use.
func (n NUMA) usable() []numaNode {
	unusable := func(node numaNode) bool { return len(node.cpus) == 0 }
	return slices.DeleteFunc(slices.Clone(n.nodes), unusable)
}

// cpuNames is "CPU 3" or "CPUs 0-3,8".
func cpuNames(cpus []int) string {
	if len(cpus) == 1 {
		return "CPU " + itoa(cpus[0])
	}
	return "CPUs " + cpuRanges(cpus)
}

// cpuRanges is a list in the kernel's format, "0-3,8".
func cpuRanges(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		last := i
		for last+1 < len(cpus) && cpus[last+1] == cpus[last]+1 {
			last++
		}
		part := itoa(cpus[i])
		if last > i {
			part += "-" + itoa(cpus[last])
		}
		parts, i = append(parts, part), last+1
	}
	return strings.Join(parts, ",")
}
