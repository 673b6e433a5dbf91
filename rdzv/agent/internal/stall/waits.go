package stall

import (
	"cmp"
	"io/fs"
	"time"

	"rdzv/internal/procfs"
	"rdzv/rdzv/stacks"
)

// waits is how long processes have waited for a CPU by now, by PID.
type waits map[int]cpuWait

// cpuWait is how long the main thread of a process has waited for a CPU.
type cpuWait struct {
	counted procfs.Scheduling // the kernel's count: of the waits that are over
	lasts   time.Duration     // of the one that is not, as far as it has been observed
	at      time.Time         // of the observation
	ready   bool              // to run, at that time
}

func (w cpuWait) total() time.Duration { return w.counted.Waited + w.lasts }

// since is how long the main thread of one of the processes, or of the Python below it, has waited
// as far as that has become known since the last look: the one that waited longest. A process that
// was not there has begun since.
func (w *waits) since(now time.Time, proc fs.FS, pids []int) (longest time.Duration) {
	looked := waits{}
	for _, pid := range pids {
		pid = cmp.Or(stacks.FindPython(proc, pid), pid)
		before := (*w)[pid]
		looked[pid] = before.next(now, proc, pid)
		longest = max(longest, looked[pid].total()-before.total())
	}
	*w = looked
	return longest
}

// next looks at a process again. The kernel counts a wait when it is over, which takes seconds for
// a process of low priority on a busy CPU. One that was ready to run, and has not run since, has
// waited all the time.
func (w cpuWait) next(now time.Time, proc fs.FS, pid int) cpuWait {
	next := cpuWait{counted: procfs.ReadScheduling(proc, pid), at: now}
	if w.ready && next.counted.Ran > 0 && next.counted == w.counted {
		next.lasts = w.lasts + max(0, now.Sub(w.at))
	}
	process, err := procfs.Read(proc, pid)
	next.ready = err == nil && process.State == 'R'
	return next
}
