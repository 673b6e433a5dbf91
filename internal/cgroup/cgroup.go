// Package cgroup says where the files of a process's control groups are.
package cgroup

import (
	"path"
	"slices"
	"strings"
)

// Dirs returns the directories of a process's cgroup for a controller, such as "memory", relative
// to the root of the file system: its own, then its ancestors. list is the content of
// /proc/PID/cgroup, with lines such as "0::/user.slice" (version 2) and "5:cpu,cpuacct:/job"
// (version 1, cgroups(7)); version 1 counts if both have the controller. In a container the path
// may be the host's: then only the topmost directory exists.
func Dirs(list, controller string) (dirs []string) {
	top, own := "", ""
	for line := range strings.Lines(list) {
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
