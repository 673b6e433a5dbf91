// Package activity tells what processes are doing, as far as the kernel shows it without tracing
// them: whether they run, and how much CPU time they use.
package activity

import (
	"context"
	"io/fs"
	"time"

	"rdzv/internal/procfs"
)

// Activity describes a process and its descendants during an interval.
type Activity struct {
	// State is procfs.Process's of the process itself, or D if it or a descendant was in an
	// uninterruptible wait at the beginning and at the end of the interval; 0 if it has ended.
	State byte
	// CPU is how many cores they used on average.
	CPU float64
}

// ticksPerSecond is the unit of CPU times in /proc (USER_HZ), the same in all kernels.
const ticksPerSecond = 100

// Watch watches processes for an interval, or until ctx ends.
func Watch(ctx context.Context, proc fs.FS, pids []int, interval time.Duration) []Activity {
	before, began := make([]tree, len(pids)), time.Now()
	for i, pid := range pids {
		before[i] = readTree(proc, pid)
	}
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	all, took := make([]Activity, len(pids)), time.Since(began).Seconds()
	for i, pid := range pids {
		all[i] = between(before[i], readTree(proc, pid), pid, took)
	}
	return all
}

// between compares two observations of the process pid that are so many seconds apart. The CPU time
// of descendants that have ended in between does not count.
func between(before, after tree, pid int, seconds float64) Activity {
	a := Activity{State: after[pid].State}
	for pid, p := range after {
		was := before[pid]
		if was.Start != p.Start {
			was = procfs.Process{} // it began meanwhile
		}
		a.CPU += float64(p.CPU-was.CPU) / ticksPerSecond / seconds
		if p.State == 'D' && was.State == 'D' {
			a.State = 'D'
		}
	}
	return a
}

// tree is a process and its descendants, by PID.
type tree map[int]procfs.Process

func readTree(proc fs.FS, pid int) tree {
	t := tree{}
	procfs.FindDescendant(proc, pid, func(pid int) bool {
		if p, err := procfs.Read(proc, pid); err == nil {
			t[pid] = p
		}
		return false
	})
	return t
}
