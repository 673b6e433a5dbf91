package envmap

import (
	"io/fs"
	"strconv"
	"strings"

	"rdzv/internal/cgroup"
)

// CPUs are the processors that this process may use. Each number is at least 1.
type CPUs struct {
	Count int // hardware threads in the affinity mask, at most the cgroups' CPU quota
	Mask  int // cores in the affinity mask
	Node  int // cores in the cgroup's cpuset, at most the quota, for all workers of the node
}

// ReadCPUs reads CPUs from /proc and /sys below root. Files that cannot be read impose no limit.
func ReadCPUs(root fs.FS) CPUs {
	online := readSet(root, "sys/devices/system/cpu/online")
	mask := cpuList(field(readText(root, "proc/self/status"), "Cpus_allowed_list:"))
	if len(mask) == 0 {
		mask = online
	}
	cgroups := readText(root, "proc/self/cgroup")
	node := cpusetOf(root, cgroups)
	if len(node) == 0 {
		node = online
	}
	siblings := readSet(root, "sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
	c := CPUs{
		Count: max(1, len(mask)),
		Mask:  max(1, cores(mask, siblings)),
		Node:  max(1, cores(node, siblings)),
	}
	if quota := quotaOf(root, cgroups); quota > 0 {
		c.Count, c.Node = min(c.Count, quota), min(c.Node, quota)
	}
	return c
}

// Threads returns OMP_NUM_THREADS for each of the agent's workers: the cores to which the launcher
// bound the agent, divided by its workers, but at most an equal share of the node, and at least 1.
// The share matters because Open MPI by default binds each rank to a whole socket, which several
// ranks share. (torchrun sets 1, which leaves most of the node idle.)
func (c CPUs) Threads(agentWorkers, nodeWorkers int) int {
	bound := c.Mask / max(1, agentWorkers)
	share := c.Node / max(1, nodeWorkers)
	return max(1, min(bound, share))
}

// cores counts the cores of a set of hardware threads, given the siblings of CPU 0. All cores of a
// node have the same number of threads, numbered either consecutively (0-1) or with a stride
// (0,64).
func cores(set, siblings []int) int {
	if len(siblings) < 2 || siblings[0] != 0 {
		return len(set)
	}
	width, stride := len(siblings), siblings[1]
	seen := map[int]bool{}
	for _, cpu := range set {
		core := cpu % stride
		if stride == 1 {
			core = cpu / width
		}
		seen[core] = true
	}
	return len(seen)
}

// maxCPUs is the largest number of CPUs that is accepted.
const maxCPUs = 1 << 16

// cpuList parses the kernel's list format, "0-3,8,10-11"; a malformed list is nil.
func cpuList(list string) []int {
	var cpus []int
	for field := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		low, high, isRange := strings.Cut(field, "-")
		if !isRange {
			high = low
		}
		first, errFirst := strconv.Atoi(low)
		last, errLast := strconv.Atoi(high)
		if errFirst != nil || errLast != nil || first < 0 || last < first ||
			last >= maxCPUs || len(cpus) >= maxCPUs {
			return nil
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

func readSet(root fs.FS, name string) []int { return cpuList(readText(root, name)) }

// cpusetOf reads the CPUs of this process's cgroup, version 2 or 1. cgroups is the content of
// /proc/self/cgroup. It returns nil if there is no cpuset.
func cpusetOf(root fs.FS, cgroups string) []int {
	for _, dir := range cgroup.Dirs(cgroups, "cpuset") {
		for _, name := range []string{"cpus.effective", "effective_cpus", "cpus"} {
			if set := readSet(root, dir+"/cpuset."+name); len(set) > 0 {
				return set
			}
		}
	}
	return nil
}

// quotaOf returns the smallest CPU quota of this process's cgroup and its ancestors, in CPUs,
// rounded up; 0 if there is none. cpu.max ("200000 100000", "max 100000") and the two files of
// version 1 give a time and a period in microseconds.
func quotaOf(root fs.FS, cgroups string) int {
	quota := 0
	for _, dir := range cgroup.Dirs(cgroups, "cpu") {
		limit, period, version2 := strings.Cut(readText(root, dir+"/cpu.max"), " ")
		if !version2 {
			limit = readText(root, dir+"/cpu.cfs_quota_us")
			period = readText(root, dir+"/cpu.cfs_period_us")
		}
		n, errN := strconv.Atoi(strings.TrimSpace(limit))
		per, errPer := strconv.Atoi(strings.TrimSpace(period))
		if errN != nil || errPer != nil || n <= 0 || per <= 0 {
			continue
		}
		if cpus := (n-1)/per + 1; quota == 0 || cpus < quota {
			quota = cpus
		}
	}
	return quota
}
