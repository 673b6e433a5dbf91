package postmortem

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
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
	for line := range strings.Lines(string(list)) {
		_, entry, _ := strings.Cut(strings.TrimSpace(line), ":") // behind the hierarchy's number
		controllers, dir, _ := strings.Cut(entry, ":")
		var top, file string
		switch controllers {
		case "":
			top, file = "sys/fs/cgroup", "memory.events"
		case "memory":
			top, file = "sys/fs/cgroup/memory", "memory.oom_control"
		default:
			continue
		}
		// In a container the cgroup may be mounted at the top while its path is that of the host.
		for _, at := range []string{path.Join(top, dir), top} {
			if n := field(root, path.Join(at, file), "oom_kill"); n >= 0 {
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
