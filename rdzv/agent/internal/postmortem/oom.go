package postmortem

import (
	"io/fs"
	"strconv"
	"strings"

	"rdzv/internal/cgroup"
)

// OOMKills is how many processes the kernel's out-of-memory killer has killed in this process's
// cgroup and below; -1 if unknown.
//
// Source: cgroup v2, memory.events, "oom_kill" (Linux 4.13); for cgroup v1
// memory.oom_control, "oom_kill" (same release).
func OOMKills(root fs.FS) int {
	list, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return -1
	}
	dirs := cgroup.Dirs(string(list), "memory")
	if len(dirs) > 1 { // in a container the path may be the host's, and the cgroup is at the top
		dirs = []string{dirs[0], dirs[len(dirs)-1]}
	}
	for _, dir := range dirs {
		for _, file := range []string{"memory.events", "memory.oom_control"} { // version 2, 1
			if n := field(root, dir+"/"+file, "oom_kill"); n >= 0 {
				return n
			}
		}
	}
	return -1
}

// field reads a number from a file of lines "name number".
func field(root fs.FS, file, name string) int {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
				return n
			}
		}
	}
	return -1
}
