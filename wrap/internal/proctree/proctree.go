// Package proctree lists the children of this process, adopted ones included.
//
// It is linked into the watchdog, so it imports only what is ready before any other package's init.
package proctree

import (
	"os"
	"strconv"

	"rdzv/internal/procfs"
)

// Children returns the pids of the direct children of this process, zombies included. A child that is born, dies
// or is adopted meanwhile may be missing: ask again until the answer stays the same.
//
// The source is /proc/self/task/*/children, and where the kernel was built without it (CONFIG_PROC_CHILDREN),
// the parent field of every /proc/*/stat.
func Children() ([]int, error) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, task := range tasks {
		text, err := os.ReadFile(childrenFile(task.Name()))
		if err == nil {
			pids = appendNumbers(pids, text)
		} else if _, gone := os.Stat("/proc/self/task/" + task.Name()); gone == nil {
			return scan(os.Getpid())
		}
	}
	return pids, nil
}

// ChildrenOf is Children for a process whose children all belong to the same thread, of which it needs one file only.
func ChildrenOf(thread int) ([]int, error) {
	text, err := os.ReadFile(childrenFile(strconv.Itoa(thread)))
	if err != nil {
		return scan(os.Getpid())
	}
	return appendNumbers(nil, text), nil
}

func childrenFile(thread string) string { return "/proc/self/task/" + thread + "/children" }

// appendNumbers appends the decimal numbers of text, which are separated by blanks.
func appendNumbers(to []int, text []byte) []int {
	n, in := 0, false
	for _, c := range text {
		if c >= '0' && c <= '9' {
			n, in = n*10+int(c-'0'), true
			continue
		}
		if in {
			to = append(to, n)
		}
		n, in = 0, false
	}
	if in {
		to = append(to, n)
	}
	return to
}

// scan looks through all processes for those whose parent is parent.
func scan(parent int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, err := procfs.Read(procfs.System, pid); err == nil && p.Parent == parent {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
