// Package devicefiles tells when processes that could not be killed have closed the files of their
// GPUs: until then other processes cannot use the memory of these.
package devicefiles

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"time"

	"rdzv/internal/procfs"
)

const (
	every   = 50 * time.Millisecond // how often it looks
	maxOpen = 4096                  // how many open files of a process it looks at
)

// AwaitClosed waits until none of the processes has a device file open, or ctx ends. It calls
// waiting, once, if it has to wait. Processes of another user count as having none: what they have
// open cannot be seen.
func AwaitClosed(ctx context.Context, proc fs.FS, pids []int, waiting func(pid int, file string)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for report := true; ; report = false {
		pid, file := holder(proc, pids)
		if pid == 0 {
			return
		}
		if report {
			waiting(pid, file)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// holder is a process that has a device file open; 0 if none has.
func holder(proc fs.FS, pids []int) (pid int, file string) {
	for _, pid := range pids {
		open, err := procfs.OpenFiles(proc, pid, maxOpen)
		if i := slices.IndexFunc(open, isDevice); err == nil && i >= 0 {
			return pid, open[i]
		}
	}
	return 0, ""
}

func isDevice(file string) bool {
	return strings.HasPrefix(file, "/dev/nvidia") || file == "/dev/kfd"
}
