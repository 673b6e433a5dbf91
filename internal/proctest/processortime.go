package proctest

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"rdzv/internal/procfs"
)

// HasEnded tells whether a process has ended with all its threads, as its parent then knows. The
// state of its main thread is Z before.
func HasEnded(pid int) bool {
	p, err := procfs.Read(procfs.System, pid)
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	return err != nil || p.State == 'X' || p.State == 'Z' && len(threads) <= 1
}

// AwaitProcessorTime waits until a process has had a processor for a time, which takes longer on a
// busy machine, and returns how long it has had one. It is 0 if the process ends before, or has
// nothing to do for a minute.
func AwaitProcessorTime(pid int, d time.Duration) time.Duration {
	late := time.Now().Add(time.Minute)
	for begun := processorTime(pid); time.Now().Before(late); time.Sleep(100 * time.Microsecond) {
		had := processorTime(pid) - begun
		p, err := procfs.Read(procfs.System, pid)
		if err != nil || p.State == 'Z' || p.State == 'X' {
			return 0
		}
		if had >= d {
			return had
		}
	}
	return 0
}

// processorTime is what the threads of a process have had so far.
func processorTime(pid int) (sum time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		var ns int64
		_, _ = fmt.Sscan(string(text), &ns)
		sum += time.Duration(ns)
	}
	return sum
}
