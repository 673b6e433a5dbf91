package envmap

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// cpusetOf reads the CPUs of this process's cgroup, version 2 or 1. Nil if there is none.
func cpusetOf(root fs.FS) []int {
	for _, dir := range cgroupDirs(root, "cpuset") {
		for _, name := range []string{"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"} {
			if set := readSet(root, dir+"/"+name); len(set) > 0 {
				return set
			}
		}
	}
	return nil
}

// quotaOf returns the smallest CPU quota of this process's cgroup and those above it, in whole CPUs, rounded up; 0 is none.
func quotaOf(root fs.FS) int {
	quota := 0
	for _, dir := range cgroupDirs(root, "cpu") {
		if q := quotaIn(root, dir); q > 0 && (quota == 0 || q < quota) {
			quota = q
		}
	}
	return quota
}

// quotaIn reads cpu.max ("200000 100000", "max 100000"), or the two files of version 1.
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

// cgroupDirs returns the folders of this process's cgroup for a controller, its own first, then those above it. In a
// container the path in /proc/self/cgroup may be the host's, and only the top exists.
func cgroupDirs(root fs.FS, controller string) []string {
	top, own := cgroupOf(root, controller)
	if own == "" {
		return nil
	}
	var dirs []string
	for dir := path.Clean("/" + own); ; dir = path.Dir(dir) {
		dirs = append(dirs, path.Join(top, dir))
		if dir == "/" {
			return dirs
		}
	}
}

// cgroupOf reads lines such as "0::/user.slice" (version 2) and "5:cpu,cpuacct:/job" (version 1) of /proc/self/cgroup.
func cgroupOf(root fs.FS, controller string) (top, own string) {
	text, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) < 3 {
			continue
		}
		for name := range strings.SplitSeq(fields[1], ",") {
			if name == controller {
				return "sys/fs/cgroup/" + controller, fields[2]
			}
		}
		if fields[0] == "0" {
			top, own = "sys/fs/cgroup", fields[2]
		}
	}
	return top, own
}
