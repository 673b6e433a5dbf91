package query

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"syscall"

	"rdzv/internal/procfs"
)

// Elsewhere lists the agents of a user that are visible in proc and in another network namespace
// than this process, so that it cannot ask them. It recognises them by their name and arguments.
func Elsewhere(proc fs.FS, uid int) (pids []int) {
	entries, _ := fs.ReadDir(proc, ".")
	own, _ := fs.ReadLink(proc, "self/ns/net")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !ownedBy(e, uid) {
			continue
		}
		p, err := procfs.Read(proc, pid)
		if err != nil || p.Name != "rdzv" || !slices.Contains(procfs.Arguments(proc, pid), "exec") {
			continue
		}
		network, err := fs.ReadLink(proc, path.Join(e.Name(), "ns/net"))
		if err == nil && network != own {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ownedBy tells whether an entry of /proc is a process of this user.
func ownedBy(e fs.DirEntry, uid int) bool {
	info, err := e.Info()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}
