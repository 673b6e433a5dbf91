// Package portuser finds which process uses a port, for messages.
package portuser

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"rdzv/internal/procfs"
	"rdzv/internal/procfs/nettcp"
)

// Of describes the process that listens on a port of this host, such as "pid 4711 (python3)".
// It is "" if that is not found: only root sees the sockets of other users' processes.
func Of(proc fs.FS, port uint16) string {
	inodes := nettcp.Inodes(proc, "self", port)
	entries, err := fs.ReadDir(proc, ".")
	if err != nil || len(inodes) == 0 {
		return ""
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		sockets, _ := procfs.Sockets(proc, pid)
		if !slices.ContainsFunc(sockets, func(s uint64) bool { return inodes[s] }) {
			continue
		}
		if p, err := procfs.Read(proc, pid); err == nil {
			return fmt.Sprintf("pid %d (%s)", pid, p.Name)
		}
	}
	return ""
}

// maxUsers limits the length of a line about ports that are in use.
const maxUsers = 3

// All describes the processes of this host that listen on the ports: "pid 4711 (python3), pid
// 4712 (nc)". Only root sees those of other users; it is "" if none is seen.
func All(proc fs.FS, ports []int) string {
	if proc == nil {
		return ""
	}
	var users []string
	for _, port := range ports {
		user := Of(proc, uint16(port))
		if user != "" && !slices.Contains(users, user) {
			users = append(users, user)
		}
	}
	if len(users) > maxUsers {
		users = append(users[:maxUsers], "and others")
	}
	return strings.Join(users, ", ")
}
