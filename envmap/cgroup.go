package envmap

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// cpusetOf reads the CPUs of this process's cgroup, version 2 or 1. cgroups is the content of
// /proc/self/cgroup. It returns nil if there is no cpuset.
func cpusetOf(root fs.FS, cgroups string) []int {
	for _, dir := range cgroupDirs(cgroups, "cpuset") {
		for _, name := range []string{"cpus.effective", "effective_cpus", "cpus"} {
			if set := readSet(root, dir+"/cpuset."+name); len(set) > 0 {
				return set
			}
		}
	}
	return nil
}

// quotaOf returns the smallest CPU quota of this process's cgroup and its ancestors, in CPUs,
// rounded up; 0 if there is none.
func quotaOf(root fs.FS, cgroups string) int {
	quota := 0
	for _, dir := range cgroupDirs(cgroups, "cpu") {
		if q := quotaIn(root, dir); q > 0 && (quota == 0 || q < quota) {
			quota = q
		}
	}
	return quota
}

// quotaIn reads cpu.max ("200000 100000", "max 100000"), or the two files of version 1. Both give a
// time and a period in microseconds.
func quotaIn(root fs.FS, dir string) int {
	text, err := fs.ReadFile(root, dir+"/cpu.max")
	limit, period, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if err != nil {
		a, _ := fs.ReadFile(root, dir+"/cpu.cfs_quota_us")
		b, _ := fs.ReadFile(root, dir+"/cpu.cfs_period_us")
		limit, period = strings.TrimSpace(string(a)), strings.TrimSpace(string(b))
	}
	n, errN := strconv.Atoi(limit)
	per, errPer := strconv.Atoi(period)
	if errN != nil || errPer != nil || n <= 0 || per <= 0 {
		return 0
	}
	return (n-1)/per + 1
}

// cgroupDirs returns the directories of this process's cgroup for a controller: its own, then its
// ancestors. cgroups has lines such as "0::/user.slice" (version 2) and "5:cpu,cpuacct:/job"
// (version 1). In a container the path may be the host's; then only the topmost directory exists.
func cgroupDirs(cgroups, controller string) (dirs []string) {
	top, own := "", ""
	for line := range strings.Lines(cgroups) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(fields) < 3:
		case slices.Contains(strings.Split(fields[1], ","), controller):
			top, own = "sys/fs/cgroup/"+controller, fields[2]
		case fields[0] == "0" && own == "":
			top, own = "sys/fs/cgroup", fields[2]
		}
	}
	if own == "" {
		return nil
	}
	for dir := path.Clean("/" + own); ; dir = path.Dir(dir) {
		dirs = append(dirs, path.Join(top, dir))
		if dir == "/" {
			return dirs
		}
	}
}
