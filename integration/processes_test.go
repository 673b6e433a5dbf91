package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rdzv/internal/procfs"
)

// allProcesses returns the processes of this machine.
func allProcesses() (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range found {
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// commandLine returns the arguments of a process, or one that is empty if it has ended.
func commandLine(pid int) []string {
	if line := procfs.Arguments(procfs.System, pid); len(line) > 0 {
		return line
	}
	return []string{""}
}

// isRdzv tells whether a process is an agent, or its runner.
func isRdzv(pid int) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && strings.TrimSuffix(exe, " (deleted)") == *rdzvBin
}

// isWorker tells whether a process is a worker program or its descendant.
func isWorker(pid int) bool {
	line := commandLine(pid)
	return len(line) > 1 && line[0] == self && line[1] == "worker" || line[0] == "sleep"
}

// read returns what /proc tells about a process; if it has ended, its state is 'X'.
func read(pid int) procfs.Process {
	p, err := procfs.Read(procfs.System, pid)
	if err != nil {
		p.State = 'X'
	}
	return p
}

// agentAbove is the agent of a worker. In between is its runner.
func agentAbove(pid int) int { return parentOf(parentOf(pid)) }

func parentOf(pid int) int   { return read(pid).Parent }
func nameOf(pid int) string  { return read(pid).Name }
func stateOf(pid int) string { return string(read(pid).State) }

// established is the state of a socket in /proc/net/tcp.
const established = "01"

// sockets counts the TCP sockets of a process that are in a state.
func sockets(pid int, state string) (n int) {
	own := map[string]bool{}
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			own[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		for line := range strings.Lines(string(text)) {
			const stateField, inodeField = 3, 9
			fields := strings.Fields(line)
			if len(fields) > inodeField && fields[stateField] == state && own[fields[inodeField]] {
				n++
			}
		}
	}
	return n
}

// hasStore tells whether a process has files of a store open. All agents may have a socket that
// listens: under Hydra they inherit one from mpiexec.
func hasStore(pid int) bool {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return slices.ContainsFunc(links, func(link string) bool {
		target, _ := os.Readlink(link)
		return strings.Contains(target, "/rdzv-store-")
	})
}

// isAgent tells whether a process answers rdzv status, as no task does that shares the agent of
// another one.
func isAgent(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", pid))
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	var open []string
	for _, link := range links {
		target, _ := os.Readlink(link)
		open = append(open, target)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // the inode is the seventh, the address the last one
		if len(fields) == 8 && strings.HasPrefix(fields[7], "@rdzv/agent/") &&
			slices.Contains(open, "socket:["+fields[6]+"]") {
			return true
		}
	}
	return false
}

// numberIn returns the number after a name in a file of /proc, or 0 if there is none.
func numberIn(path, name string) int {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name); found {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}
